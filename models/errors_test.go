package models

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// What a person reads of an unreachable server names the address once and no
// system call.
func TestUnreachableReason(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := &net.DNSError{Err: "no such host", Name: "nowhere.invalid", Server: "10.0.0.1:53"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, syscall.ECONNREFUSED.Error()},
		{fmt.Errorf("wrapped: %w", refused), syscall.ECONNREFUSED.Error()},
		{&net.OpError{Op: "dial", Net: "tcp", Err: unknown}, "no such host"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, "i/o timeout"},
		{silence(10 * time.Second), "no answer within 10s"},
	} {
		e := &UnreachableError{Server: "ollama", URL: "http://127.0.0.1:1", Err: c.err}
		if want := "cannot reach ollama at http://127.0.0.1:1: " + c.want; e.Error() != want || !errors.Is(e, c.err) {
			t.Errorf("%v gives %q, not %q", c.err, e.Error(), want)
		}
	}
	if !errors.Is(silence(time.Second), os.ErrDeadlineExceeded) {
		t.Error("a server that was waited for is not told from one that is not there")
	}
}
