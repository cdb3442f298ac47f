package batch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"stopgap/models"
)

// serverFault reports whether a server, and not the question, made a run end.
func serverFault(err error) bool {
	if e, ok := errors.AsType[*models.ServerError](err); ok {
		return e.Status == 0 || e.Status >= 500 || e.Status == http.StatusTooManyRequests
	}
	return is[*models.UnreachableError](err) || is[*models.LoadingError](err) || is[*models.CutError](err) ||
		is[*models.StallError](err) || is[*models.ProtocolError](err)
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// checkTime is how long a server may take to say what it is.
const checkTime = 10 * time.Second

// answers asks a server what it is, which costs it nothing.
func (w *work) answers(s *Server) error {
	d, ok := s.Runner.Model.(models.Describer)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.left, checkTime)
	defer cancel()
	_, err := d.Describe(ctx)
	return err
}

// spoiled gives a rollout back whose server did not last. A server that does
// not answer gets no more rollouts, until it does.
func (w *work) spoiled(server int, j Job) {
	defer w.schedule.giveBack(server, j)
	s := w.Servers[server]
	err := w.answers(s)
	if err == nil || w.left.Err() != nil || !w.schedule.down(server) {
		return
	}
	w.events <- Down{Server: s.Name, Error: err.Error()}
	w.schedule.keepers.Go(func() { w.await(server, err) })
}

// await asks a server again and again whether it is back.
func (w *work) await(server int, err error) {
	patience := w.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	began, pause := time.Now(), min(time.Second, patience/4)
	for time.Since(began) < patience {
		select {
		case <-w.schedule.done:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, 15*time.Second)
		again := w.answers(w.Servers[server])
		if again == nil {
			w.schedule.up(server)
			w.tell(Up{w.Servers[server].Name})
			return
		}
		err = again
	}
	if w.left.Err() == nil {
		w.tell(Down{Server: w.Servers[server].Name, Error: err.Error(), GaveUp: true})
	}
	w.schedule.giveUp(server, err)
}

// tell sends an event, as long as anybody works.
func (w *work) tell(ev Event) {
	select {
	case w.events <- ev:
	case <-w.schedule.done:
	}
}
