package fetch

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// DefaultPace is the least time between two requests to one host.
const DefaultPace = 500 * time.Millisecond

// maxHosts bounds the hosts that a pace remembers.
const maxHosts = 1024

// A pace keeps requests to one host apart.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  map[string]time.Time // when a host may be asked again
}

func newPace(every time.Duration) *pace {
	if every == 0 {
		every = DefaultPace
	}
	return &pace{every: every, next: map[string]time.Time{}}
}

// wait waits for a host's turn, or for the end of ctx.
func (p *pace) wait(ctx context.Context, host string) error {
	if p.every < 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(p.turn(host)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn takes the next turn of a host.
func (p *pace) turn(host string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.next) >= maxHosts {
		for h, t := range p.next {
			if t.Before(now) {
				delete(p.next, h)
			}
		}
	}
	at := now
	if next := p.next[host]; next.After(now) {
		at = next
	}
	p.next[host] = at.Add(p.every)
	return at
}

// paced is a transport that waits for each host's turn, redirects included.
type paced struct {
	next http.RoundTripper
	pace *pace
}

func (t *paced) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.pace.wait(req.Context(), req.URL.Host); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(req)
}
