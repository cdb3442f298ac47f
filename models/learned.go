package models

import "sync"

// A learned is something that a server is asked for once. The zero value is
// ready. An error is not kept. Callers that ask at the same time may ask more
// than once, and all get the first answer: none waits for another's request.
type learned[T any] struct {
	mu    sync.Mutex
	value *T
}

func (l *learned[T]) get(ask func() (T, error)) (T, error) {
	if v, ok := l.peek(); ok {
		return v, nil
	}
	v, err := ask()
	if err != nil {
		return v, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value == nil {
		l.value = &v
	}
	return *l.value, nil
}

// peek gives the value if it is known.
func (l *learned[T]) peek() (v T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value == nil {
		return v, false
	}
	return *l.value, true
}
