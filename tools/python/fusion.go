package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The protocol is that of ByteDance's SandboxFusion, POST /run_code.

// attempts are made on endpoints chosen by chance, each time anew.
const attempts = 5

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 8 << 20

type runRequest struct {
	Code       string  `json:"code"`
	Language   string  `json:"language"`
	RunTimeout float64 `json:"run_timeout"` // seconds
}

type runResponse struct {
	Status  string `json:"status"` // Success, Failed or SandboxError
	Message string `json:"message"`
	Result  *struct {
		Status        string  `json:"status"` // Finished, Error or TimeLimitExceeded
		ExecutionTime float64 `json:"execution_time"`
		Stdout        string  `json:"stdout"`
		Stderr        string  `json:"stderr"`
	} `json:"run_result"`
}

// remote runs code on an endpoint, and on another where that fails. Its failures
// are told in the words of Tongyi DeepResearch.
func (p *Interpreter) remote(ctx context.Context, code string) (string, error) {
	var words string
	for range attempts {
		endpoint := p.options.Endpoints[rand.IntN(len(p.options.Endpoints))]
		text, err := p.ask(ctx, endpoint, code)
		if err == nil {
			return text, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			words = fmt.Sprintf("[Python Interpreter Error] TimeoutError: Execution timed out on endpoint %s.", shown(endpoint))
		} else {
			words = fmt.Sprintf("[Python Interpreter Error]: %v on endpoint %s", err, shown(endpoint))
		}
	}
	return words, nil
}

// ask runs code on one endpoint.
func (p *Interpreter) ask(ctx context.Context, endpoint, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	body, err := json.Marshal(runRequest{code, "python", p.options.Timeout.Seconds()})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(endpoint, "/")+"/run_code", bytes.NewReader(body))
	if err != nil {
		return "", errors.New("the address is not one")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.options.Client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the address, which may hold a password
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the server answered %s", resp.Status)
	case len(text) > maxAnswer:
		return "", fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return p.read(text)
}

// read reads an answer.
func (p *Interpreter) read(text []byte) (string, error) {
	var r runResponse
	switch err := json.Unmarshal(text, &r); {
	case err != nil:
		return "", errors.New("the answer is not that of a SandboxFusion server")
	case r.Status == "SandboxError":
		return "", fmt.Errorf("the sandbox failed: %.200s", r.Message)
	case r.Result == nil:
		return "", errors.New("the answer has no result")
	}
	problem := ""
	ran := time.Duration(r.Result.ExecutionTime * float64(time.Second))
	if r.Result.Status == "TimeLimitExceeded" || ran >= p.options.Timeout-time.Second {
		problem = timedOut
	}
	return report(r.Result.Stdout, r.Result.Stderr, problem), nil
}

// shown is an address without what may be secret in it.
func shown(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "(no address)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
