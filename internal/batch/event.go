package batch

import (
	"time"

	"stopgap/models"
	"stopgap/runner"
)

// A Job is one rollout that is to be made.
type Job struct {
	Item    string `json:"item"`
	Rollout int    `json:"rollout"` // from 1
	Seed    int    `json:"seed"`
	item    int    // of the dataset
	tries   int    // that a server spoiled
}

// A Result is a rollout that has come to its end.
type Result struct {
	Job
	Server string `json:"server"`
	// Journal is the file that has the whole run, below the batch's folder.
	Journal     string             `json:"journal"`
	Termination runner.Termination `json:"termination"`
	Answer      string             `json:"answer,omitempty"`
	// Made are the calls of an item with functions, which nobody has made.
	// Underscores says that the dots of the functions' names were made underscores.
	Made        []Call `json:"made,omitempty"`
	Underscores bool   `json:"underscores,omitempty"`
	// Error says that the rollout failed: a server, or what it was asked with.
	Error    string        `json:"error,omitempty"`
	Turns    int           `json:"turns"`
	Requests int           `json:"requests"`
	Calls    int           `json:"calls"`
	Problems int           `json:"problems,omitempty"`
	Invented int           `json:"invented,omitempty"`
	Pieces   int           `json:"pieces"`
	Usage    models.Usage  `json:"usage"`
	Duration time.Duration `json:"duration_ns"`
}

// Failed reports whether the rollout ended by an error.
func (r *Result) Failed() bool { return r.Error != "" }

// newResult sums up a run.
func newResult(j Job, server, journal string, o runner.Outcome, err error) Result {
	r := Result{
		Job: j, Server: server, Journal: journal, Termination: o.Termination, Answer: o.Answer, Error: o.Error,
		Turns: o.Turns, Requests: o.Requests, Calls: o.Calls, Problems: o.Problems, Invented: o.Invented,
		Pieces: o.Pieces, Usage: o.Usage, Duration: o.Duration,
	}
	if err != nil && r.Error == "" {
		r.Error = err.Error()
	}
	return r
}

// An Event is one thing that happened in a batch. The types of this file are
// all there are.
type Event interface{ Kind() string }

// Began is the first event.
type Began struct {
	Dir           string `json:"dir"`
	Configuration string `json:"configuration"` // its hash
	Items         int    `json:"items"`
	Rollouts      int    `json:"rollouts"`           // in all
	Done          int    `json:"done,omitempty"`     // of them before
	Failed        int    `json:"failed,omitempty"`   // of those
	Retrying      int    `json:"retrying,omitempty"` // failed ones that are made again
}

// Started says that a worker has begun with a rollout.
type Started struct {
	Worker int `json:"worker"` // from 1
	Job
	Question string `json:"question"`
	Server   string `json:"server"`
	Resumed  bool   `json:"resumed,omitempty"` // from its journal
}

// Moved tells what a rollout does, now and then.
type Moved struct {
	Worker int    `json:"worker"`
	Turn   int    `json:"turn"`
	Doing  string `json:"doing"`
	Pieces int    `json:"pieces,omitempty"` // of text, in this turn
}

// Finished says that a rollout has its result, which is on the ledger.
type Finished struct {
	Worker int `json:"worker"`
	Result
}

// Returned says that a rollout is to be made again, or elsewhere: its server
// did not last.
type Returned struct {
	Worker int `json:"worker"`
	Job
	Server string `json:"server"`
	Error  string `json:"error"`
}

// Anew says that a journal could not be gone on with, and that the rollout
// begins again.
type Anew struct {
	Worker int `json:"worker"`
	Job
	Reason string `json:"reason"`
}

// Down says that a server does not answer, Up that it does again.
type Down struct {
	Server string `json:"server"`
	Error  string `json:"error"`
	GaveUp bool   `json:"gave_up,omitempty"` // nobody asks it any more
}

// Up says that a server answers again.
type Up struct {
	Server string `json:"server"`
}

// Ended is the last event.
type Ended struct {
	Done     int           `json:"done"`
	Failed   int           `json:"failed,omitempty"` // of those
	Missing  int           `json:"missing,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

func (Began) Kind() string    { return "batch_began" }
func (Started) Kind() string  { return "rollout_started" }
func (Moved) Kind() string    { return "rollout_moved" }
func (Finished) Kind() string { return "rollout_finished" }
func (Returned) Kind() string { return "rollout_returned" }
func (Anew) Kind() string     { return "rollout_anew" }
func (Down) Kind() string     { return "server_down" }
func (Up) Kind() string       { return "server_up" }
func (Ended) Kind() string    { return "batch_ended" }
