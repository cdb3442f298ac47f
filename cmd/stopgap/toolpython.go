package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"stopgap/internal/config"
	"stopgap/tools"
	"stopgap/tools/fetch"
	"stopgap/tools/python"
)

// openPythonTools gives PythonInterpreter.
func openPythonTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	if o := w.origins["unsafe-python"]; w.unsafePython && o.Place != config.Flag {
		return nil, &usageError{errors.New("unsafe-python is set in the " + o.String()), "code without a sandbox is allowed by the flag alone: --unsafe-python"}
	}
	return []tools.Tool{python.New(python.Options{
		Python: w.python, Unsafe: w.unsafePython, Endpoints: w.pythonEndpoints, Client: endpointClient(w.pythonEndpoints),
	})}, nil
}

// endpointClient reaches the endpoints, wherever they are, and public addresses:
// one of them may send on, but not into this machine or its network.
func endpointClient(endpoints []string) *http.Client {
	var hosts []string
	for _, e := range endpoints {
		if u, err := url.Parse(e); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	t := (&fetch.Dialer{Allow: hosts}).Transport()
	t.MaxConnsPerHost = 0 // each runs as long as its code
	return &http.Client{Transport: t}
}

// checkEndpoint wants the address of a server.
func checkEndpoint(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("not an address such as http://localhost:8080")
	}
	return nil
}
