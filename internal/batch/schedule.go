package batch

import "sync"

// A schedule hands rollouts to workers. The rollouts of an item stay on one
// server, whose cache then has the prompt, and with one worker as far as they
// can.
type schedule struct {
	mu      sync.Mutex
	changed *sync.Cond
	items   []queued
	fresh   int   // the first item that nobody has begun
	begun   []int // items that somebody has, with rollouts left
	left    int   // rollouts that nobody has
	running int
	servers []serverState
	stopped bool
	lost    error // what the last server said that was given up
	keepers sync.WaitGroup
	done    chan struct{} // closed when the schedule stops
}

type queued struct {
	jobs   []Job
	server int // -1 for none yet
}

type serverState struct {
	running    int
	down, gone bool
}

func newSchedule(jobs [][]Job, servers int) *schedule {
	s := &schedule{servers: make([]serverState, servers), done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	for _, list := range jobs {
		s.items = append(s.items, queued{list, -1})
		s.left += len(list)
	}
	return s
}

// take gives the next rollout and its server: of the item that the worker had
// last, else of one that nobody has begun, else of one that others work on. It
// waits where a rollout may still come back, or a server.
func (s *schedule) take(last int) (Job, int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopped || s.left == 0 && s.running == 0 || s.alive() == 0 {
			s.changed.Broadcast()
			return Job{}, 0, false
		}
		if item := s.choose(last); item >= 0 {
			q := &s.items[item]
			j := q.jobs[0]
			q.jobs = q.jobs[1:]
			s.left--
			s.running++
			s.servers[q.server].running++
			return j, q.server, true
		}
		s.changed.Wait()
	}
}

// choose finds an item with a rollout left and gives it a server that is up;
// -1 where there is none.
func (s *schedule) choose(last int) int {
	if s.left == 0 || s.least() < 0 {
		return -1
	}
	if last >= 0 && len(s.items[last].jobs) > 0 {
		return s.place(last)
	}
	for ; s.fresh < len(s.items); s.fresh++ {
		if len(s.items[s.fresh].jobs) > 0 {
			s.begun = append(s.begun, s.fresh)
			s.fresh++
			return s.place(s.fresh - 1)
		}
	}
	for len(s.begun) > 0 {
		if item := s.begun[0]; len(s.items[item].jobs) > 0 {
			return s.place(item)
		}
		s.begun = s.begun[1:]
	}
	return -1
}

// place gives an item the server with the fewest rollouts, where it has none
// that is up.
func (s *schedule) place(item int) int {
	if q := &s.items[item]; q.server < 0 || s.servers[q.server].down {
		q.server = s.least()
	}
	return item
}

// least is the server that is up with the fewest rollouts, -1 for none.
func (s *schedule) least() int {
	best := -1
	for i := range s.servers {
		if !s.servers[i].down && (best < 0 || s.servers[i].running < s.servers[best].running) {
			best = i
		}
	}
	return best
}

// alive counts the servers that are not given up.
func (s *schedule) alive() int {
	n := 0
	for i := range s.servers {
		if !s.servers[i].gone {
			n++
		}
	}
	return n
}

// finish says that a rollout has its result.
func (s *schedule) finish(server int) { s.release(server, nil) }

// leave says that a rollout is left where it is.
func (s *schedule) leave(server int) { s.release(server, nil) }

// giveBack says that a rollout is to be made again.
func (s *schedule) giveBack(server int, j Job) { s.release(server, &j) }

func (s *schedule) release(server int, j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.servers[server].running--
	if j != nil {
		q := &s.items[j.item]
		q.jobs = append([]Job{*j}, q.jobs...)
		s.begun = append(s.begun, j.item)
		s.left++
	}
	s.changed.Broadcast()
}

// down says that a server does not answer. It reports whether that is new.
func (s *schedule) down(server int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.servers[server].down
	s.servers[server].down = true
	return !was
}

// up says that a server answers again.
func (s *schedule) up(server int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[server].down = false
	s.changed.Broadcast()
}

// giveUp says that a server is not asked any more, and why.
func (s *schedule) giveUp(server int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[server].gone = true
	s.lost = err
	s.changed.Broadcast()
}

// stop hands out nothing any more.
func (s *schedule) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.done)
	}
	s.changed.Broadcast()
}
