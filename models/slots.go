package models

import "sync"

// slots gives sessions their slots on a llama-server, so that a session finds
// its cache where it left it. The zero value is ready.
type slots struct {
	mu       sync.Mutex
	sessions map[string]int // slot of a session
	recent   []string       // sessions, the least recently used first
	busy     map[int]int    // running requests on a slot
	useless  bool           // naming slots was seen to lose the cache
}

// A pinned is the slot of one request. The zero value has none.
type pinned struct {
	session string
	slot    int
	again   bool // the session had this slot before
}

// defaultSlots is the slot count of a llama-server that was started without
// -np: such a server shares one cache among its slots and clears a slot that
// is named. The same number given explicitly cannot be told apart.
const defaultSlots = 4

// pin chooses the slot for a request, or none.
func (m *llama) pin(session string, facts llamaFacts) pinned {
	choice := m.opts.Slots
	if session == "" || choice == SlotsFree || facts.slots < 2 ||
		choice == SlotsAuto && facts.slots == defaultSlots {
		return pinned{}
	}
	return m.slots.acquire(session, facts.slots, choice == SlotsPinned)
}

// acquire takes a slot for a request of a session: its own; else one that no
// session has; else that of the session that has been quiet the longest. Where
// all are at work, the server decides.
func (s *slots) acquire(session string, n int, always bool) pinned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.useless && !always {
		return pinned{}
	}
	if s.sessions == nil {
		s.sessions, s.busy = map[string]int{}, map[int]int{}
	}
	slot, again := s.sessions[session]
	if !again {
		slot = s.free(n)
		if slot < 0 {
			return pinned{}
		}
		s.sessions[session] = slot
	}
	s.forgetRecent(session)
	s.recent = append(s.recent, session)
	s.busy[slot]++
	return pinned{session: session, slot: slot, again: again}
}

// free finds a slot for a new session, -1 if all are at work.
func (s *slots) free(n int) int {
	taken := map[int]bool{}
	for _, slot := range s.sessions {
		taken[slot] = true
	}
	for slot := range n {
		if !taken[slot] {
			return slot
		}
	}
	for _, session := range s.recent {
		if slot := s.sessions[session]; s.busy[slot] == 0 {
			delete(s.sessions, session)
			s.forgetRecent(session)
			return slot
		}
	}
	return -1
}

func (s *slots) forgetRecent(session string) {
	for i, r := range s.recent {
		if r == session {
			s.recent = append(s.recent[:i:i], s.recent[i+1:]...)
			return
		}
	}
}

// release gives the slot back to its session's next request.
func (s *slots) release(p pinned) {
	if p.session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[p.slot]--
}

// observe learns from a finished request: a session that comes back to its
// slot and finds nothing there is better off without one.
func (s *slots) observe(p pinned, u Usage) {
	if !p.again || !u.Reused.Known || u.Reused.N > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useless = true
}
