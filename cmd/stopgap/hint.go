package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"stopgap/internal/config"
	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools/corpus"
)

// explain prints an error and what to do next. It is the only place where
// errors become words for people.
func (a *app) explain(err error) {
	var end *ending
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE), errors.Is(err, errNothingFired), errors.Is(err, errFindings), errors.Is(err, errDifferent), is[failedCall](err):
		return
	case errors.Is(err, context.Canceled), errors.As(err, &end) && end.termination == runner.TermCancelled:
		return // whoever interrupts knows it
	}
	text, shown := err.Error(), ""
	if e, ok := errors.AsType[*stopping.CompileError](err); ok && e.Pattern != "" && e.Position >= 0 {
		line, marks := pointAt(e.Pattern, e.Position, a.screen(a.stderr, "never"), 2)
		text = strings.TrimSuffix(text, fmt.Sprintf(" of %q", e.Pattern))
		shown = "  " + line + "\n  " + marks + "\n"
	}
	fmt.Fprint(a.stderr, "stopgap: "+printable(text)+"\n"+shown)
	if h := hint(err); h != "" {
		fmt.Fprintln(a.stderr, "hint: "+printable(h))
	}
}

// isUsage reports whether an error of one of the packages is about what the
// user gave.
func isUsage(err error) bool {
	return is[*models.RefError](err) || is[*models.PromptError](err) ||
		is[*template.FormatError](err) || is[*stopping.CompileError](err) || is[*stopping.BudgetError](err) ||
		is[*corpus.ReadError](err) || is[*corpus.NoDocumentsError](err) ||
		is[*corpus.IndexError](err) || is[*corpus.EmbedRefError](err) || is[*config.Error](err) || is[*config.ValueError](err) ||
		is[*tokenizer.UnsupportedError](err) || isTrace(err) ||
		is[*runner.ChoiceError](err) || is[*runner.ConstrainError](err) || is[*runner.ThinkError](err) || is[*models.UnsupportedError](err) ||
		errors.Is(err, runner.ErrNoQuestion) || errors.Is(err, runner.ErrNoRenderer) || errors.Is(err, runner.ErrNoChat)
}

// hint says what to do about an error, or nothing.
func hint(err error) string {
	if e, ok := errors.AsType[*usageError](err); ok && e.hint != "" {
		return e.hint
	}
	if h := serverHint(err); h != "" {
		return h
	}
	if h := choiceHint(err); h != "" {
		return h
	}
	if e, ok := errors.AsType[*ending](err); ok && e.err == nil {
		return endingHint(e)
	}
	if e, ok := errors.AsType[*template.FormatError](err); ok {
		if errors.Is(e, fs.ErrNotExist) {
			return "--format takes a name or the path of a format file: \"stopgap format list\" lists the names"
		}
		return "correct the file, or use --format " + defaultFormat
	}
	if e, ok := errors.AsType[*stopping.CompileError](err); ok {
		if e.Hint != "" {
			return e.Hint
		}
		return "--stop-regex takes the syntax of .NET and Python; a plain text goes with --stop"
	}
	if is[*stopping.BudgetError](err) {
		return "write the expression so that it backtracks less, for example with [^<]* in place of .*"
	}
	if e, ok := errors.AsType[*tokenizer.UnsupportedError](err); ok {
		return e.Hint
	}
	if h := traceHint(err); h != "" {
		return h
	}
	if h := corpusHint(err); h != "" {
		return h
	}
	return fileHint(err)
}

// corpusHint is about the servers that a search needs.
func corpusHint(err error) string {
	if is[*corpus.EmbedRefError](err) {
		return "--embed takes " + corpus.EmbedForms + ", for example ollama:nomic-embed-text"
	}
	if e, ok := errors.AsType[*corpus.EmbedError](err); ok {
		switch {
		case e.Done > 0:
			return "start the server again and repeat the command: it goes on where it was"
		case e.Server == "ollama":
			return "start it with \"ollama serve\" and get an embedding model, for example \"ollama pull nomic-embed-text\"; without --embed words alone are searched"
		}
		return "check the address, and that the server has an embedding model (llama-server: --embeddings); without --embed words alone are searched"
	}
	if is[*corpus.RemoteError](err) {
		return "--corpus takes the address of a server with Search-R1's POST /retrieve: \"stopgap serve-corpus DIR\" is one"
	}
	return ""
}

// choiceHint is about what a format, a server and a run can do together.
func choiceHint(err error) string {
	if e, ok := errors.AsType[*runner.ChoiceError](err); ok {
		if e.Choice.Mode == runner.Required {
			return "name the tool, or use another --format"
		}
		return "leave --tool-choice out, or use another --format"
	}
	if is[*runner.ConstrainError](err) {
		return "--constrain needs a format whose calls are json or lines: \"stopgap format list\" tells"
	}
	if is[*runner.ThinkError](err) {
		return "--think-tokens needs a format with <think> or another thinking part: \"stopgap format list\" tells"
	}
	if is[*models.UnsupportedError](err) {
		return "docs/servers.md tells what each server can do"
	}
	if errors.Is(err, runner.ErrNoRenderer) {
		return "Ollama, llama-server and vLLM render chat templates; elsewhere name the --format"
	}
	if errors.Is(err, runner.ErrNoChat) {
		return "--format chat needs Ollama, llama-server or an OpenAI-style server"
	}
	return ""
}

// fileHint is about files that the user named.
func fileHint(err error) string {
	if e, ok := errors.AsType[*corpus.ReadError](err); ok {
		if errors.Is(e, fs.ErrNotExist) {
			return "name an existing folder, or a .jsonl file with one document a line"
		}
		return "check that you may read it"
	}
	if is[*corpus.NoDocumentsError](err) {
		return "indexed are .md, .txt, .rst, .org, .jsonl, .pdf, .docx, .pptx, .xlsx, .html, .csv and more: docs/retrieval.md has the list; others with --converter"
	}
	if is[*corpus.IndexError](err) {
		return "keep the index in another file with --index FILE"
	}
	if e, ok := errors.AsType[*config.Error](err); ok {
		if e.Near != "" {
			return fmt.Sprintf("did you mean %q?", e.Near)
		}
		return "\"stopgap config --config ''\" lists all settings, without the file"
	}
	if is[*config.ValueError](err) {
		return "\"stopgap run --help\" tells what each setting takes"
	}
	return ""
}

// startServer says how to get a model server.
const startServer = "start Ollama (\"ollama serve\") or llama-server (\"llama-server -m model.gguf\")"

// serverHint is about the errors of model servers.
func serverHint(err error) string {
	if e, ok := errors.AsType[*models.UnreachableError](err); ok {
		if errors.Is(e, os.ErrDeadlineExceeded) {
			return "it may hang: look at its log, start it again, or check the address"
		}
		return startHint(e.Server)
	}
	if errors.Is(err, errUnusable) {
		return startServer + ", or name a model with --model"
	}
	if e, ok := errors.AsType[*models.NotFoundError](err); ok {
		return notFoundHint(e)
	}
	if is[*models.LoadingError](err) {
		return "wait until the server has loaded the model, then ask again"
	}
	if e, ok := errors.AsType[*models.OverflowError](err); ok {
		return overflowHint(e)
	}
	if is[*runner.TruncatedError](err) {
		return "give the server a larger context (Ollama: --context), or ask for shorter results; \"stopgap doctor\" shows the context"
	}
	if is[*models.CutError](err) {
		return "look at the server's log: it may have been stopped or have run out of memory; what came until then is above"
	}
	if e, ok := errors.AsType[*models.StallError](err); ok {
		if e.Phase == models.StallFirstToken {
			return "a large model loads slowly: allow more with --first-token-timeout, or look at the server's log"
		}
		return "look at the server's log, or allow more with --token-timeout"
	}
	if is[*models.ProtocolError](err) {
		return wrongKindHint()
	}
	if e, ok := errors.AsType[*models.ServerError](err); ok {
		switch e.Status {
		case 401, 403:
			return "the server wants a key: put it into STOPGAP_API_KEY, or name its variable with --api-key-env"
		case 404, 405:
			return wrongKindHint()
		}
		return "look at the server's log; \"stopgap doctor\" checks the servers"
	}
	if e, ok := errors.AsType[*models.RefError](err); ok {
		if len(e.Kinds) == 1 {
			return "--model takes " + e.Kinds[0].Form + ", " + e.Kinds[0].Help
		}
		return refHint(e.Ref) + "--model takes " + kinds() + "; \"stopgap models\" lists what there is"
	}
	return ""
}

func wrongKindHint() string {
	return "check that the address belongs to the kind of server that --model names (" + kinds() + ")"
}

// refHint guesses what a reference that is none was meant to be.
func refHint(ref string) string {
	var names []string
	for _, k := range models.Kinds() {
		names = append(names, k.Name)
	}
	kind, rest, _ := strings.Cut(ref, ":")
	switch near := config.Nearest(kind, names); {
	case ref == "":
		return ""
	case near != "" && rest != "":
		return fmt.Sprintf("did you mean %q? ", near+":"+rest)
	case near == "builtin": // the one kind that stands alone
		return fmt.Sprintf("did you mean %q? ", near)
	case strings.HasSuffix(ref, ".gguf"):
		return fmt.Sprintf("a model file needs a server: \"llama-server -m FILE\", then --model llamacpp:http://127.0.0.1:8080; a very small one runs as %q; ", "builtin:"+ref)
	case kind == "http", kind == "https":
		return fmt.Sprintf("did you mean %q? ", "llamacpp:"+ref)
	}
	return fmt.Sprintf("did you mean %q? ", "ollama:"+ref)
}

// endingHint says how a run that ended without an answer might get one.
func endingHint(e *ending) string {
	switch e.termination {
	case runner.TermTurnLimit:
		return "allow more turns with --max-turns"
	case runner.TermTokenLimit:
		return "allow more with --max-tokens or --turn-tokens; the context of the model limits both (--context)"
	case runner.TermDeadline:
		return "allow more time with --timeout"
	case runner.TermLoop:
		return "the model made the same calls over and over: try a larger model or another --format"
	case runner.TermFormatError, runner.TermNoAnswer:
		if e.halted != "" {
			return e.halted + " ended the last turn before there was an answer"
		}
		if e.phases {
			return "the model does not follow the formats of research: try a larger one, or formats of your own with --planner, --outliner and --writer"
		}
		return "the model does not follow the format: try another one with --format, or a larger model"
	}
	return ""
}

// kinds lists the forms of model references.
func kinds() string {
	var forms []string
	for _, k := range models.Kinds() {
		forms = append(forms, k.Form)
	}
	return strings.Join(forms, ", ")
}

func startHint(server string) string {
	switch server {
	case "ollama":
		return "start it with \"ollama serve\", or say in OLLAMA_HOST where it listens"
	case "llama-server":
		return "start it with \"llama-server -m model.gguf\", or use --model ollama:NAME"
	}
	return "check the address and that the server runs; \"stopgap doctor\" looks for servers"
}

func notFoundHint(e *models.NotFoundError) string {
	var names []string
	for _, name := range e.Available {
		names = append(names, strings.TrimSuffix(name, ":latest"))
	}
	if near := config.Nearest(e.Model, names); near != "" {
		return fmt.Sprintf("did you mean %q? \"stopgap models\" lists what there is", near)
	}
	get := "\"stopgap models\" lists what there is"
	if e.Server == "ollama" {
		get = fmt.Sprintf("get it with \"ollama pull %s\"", e.Model)
	}
	if n := len(e.Available); n > 0 {
		get += "; there is " + strings.Join(e.Available[:min(n, 5)], ", ")
		if n > 5 {
			get += fmt.Sprintf(" and %d more", n-5)
		}
	}
	return get
}

// overflowHint tells how to get a larger context.
func overflowHint(e *models.OverflowError) string {
	size := ""
	if e.PromptTokens.Known {
		size = fmt.Sprintf(" (%d tokens and room for the answer)", e.PromptTokens.N)
	}
	return "ask for a larger context with --context N" + size +
		" on Ollama, or start llama-server with -c N; or shorten the question"
}
