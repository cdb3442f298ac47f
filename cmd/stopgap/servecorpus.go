package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/tools/corpus"
)

func (a *app) serveCorpusCommand() *cobra.Command {
	s := newSettings()
	var listen string
	var opts corpus.ServeOptions
	var queries, documents, parallel int
	cmd := &cobra.Command{
		Use:   "serve-corpus DIR",
		Short: "Serve a folder of documents to other programs",
		Long: `Serve a folder of documents, a .jsonl file, or the sample documents to other
programs, as Search-R1 and ASearcher ask for them:

  POST /retrieve {"queries": ["…"], "topk": 3, "return_scores": true}
  POST /access   {"urls": ["id or url of a result"]}

"stopgap run --corpus http://127.0.0.1:8765" uses such a server. The index is
built when it is needed, as "stopgap index" does it. It listens for this machine
alone unless --listen says otherwise; there is no password. Ctrl-C ends it once
the requests under way are answered; a second one ends it at once.`,
		Example: "  stopgap serve-corpus ~/notes\n  curl -s 127.0.0.1:8765/retrieve --json '{\"queries\":[\"tides\"]}'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return &usageError{fmt.Errorf("serve-corpus takes one folder or file, not %d", len(args)), "for example: stopgap serve-corpus ~/notes"}
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			s.corpus = args[0]
			opts.MaxQueries, opts.MaxTopK, opts.Parallel = queries, documents, parallel
			return a.serveCorpus(cmd.Context(), s, listen, opts)
		},
	}
	addSome(cmd, s, groupTools, "index", "embed", "converter")
	addSome(cmd, s, groupModel, "api-key-env")
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.StringVar(&listen, "listen", "127.0.0.1:8765", "the `ADDRESS` and port; port 0 takes a free one")
		f.Var(count{&queries, 1}, "max-queries", "how many queries a request may have (4096)")
		f.Var(count{&documents, 1}, "max-documents", "how many documents a query or a request of /access may ask for (100)")
		f.Var(count{&parallel, 1}, "parallel", "how many requests are answered at once (4)")
		f.DurationVar(&opts.Timeout, "request-timeout", time.Minute, "how long a request may take")
	})
	a.completeEmbed(cmd, s)
	return cmd
}

// serveCorpus listens first, so that an address that is taken costs no indexing.
func (a *app) serveCorpus(parent context.Context, s *settings, listen string, opts corpus.ServeOptions) error {
	ctx, stop := interruptible(parent)
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return &usageError{fmt.Errorf("cannot listen at %s: %w", listen, bareListen(err)), "--listen takes an address and a port, such as 127.0.0.1:8765; port 0 takes a free one"}
	}
	defer l.Close()
	if address, ok := l.Addr().(*net.TCPAddr); ok && address.IP.IsLoopback() {
		opts.Hosts = []string{"localhost"}
	}
	x, err := a.openIndex(ctx, s)
	if err != nil {
		return err
	}
	defer x.Close()
	if _, err := fmt.Fprintf(a.stdout, "serving %s at http://%s\n", printable(s.corpus), l.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		Handler: x.Handler(opts), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(parent), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		_ = server.Close() // whoever still waits is cut off
	}
	return nil
}

// shutdownLimit is how long requests under way may still take.
const shutdownLimit = 10 * time.Second

// bareListen takes the address off an error, because ours names it.
func bareListen(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}
