package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/template"
)

// newFlags are the flags of "stopgap format new".
type newFlags struct {
	from           string
	extends, force bool
}

func (a *app) formatNewCommand() *cobra.Command {
	s := newSettings()
	f := newFlags{from: defaultFormat}
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a format file to start from",
		Long: `Write NAME.tmpl, a format file to start from: a copy of a shipped format in which
every key of the head is explained and every block stands to be changed.

With --extends the file names the shipped format and holds only what is changed;
what it does not say follows that one, also in later versions. That suits another
system message or other sampling; a copy suits another prompt.`,
		Example: "  stopgap format new mine\n  stopgap format new brief --from qwq --extends",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return &usageError{fmt.Errorf("new takes one name, not %d", len(args)), "for example: stopgap format new mine"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.newFormat(s, args[0], f)
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.StringVar(&f.from, "from", f.from, "the shipped format to start from, a `NAME`")
		p.BoolVar(&f.extends, "extends", false, "name that format in place of copying it")
		p.BoolVar(&f.force, "force", false, "overwrite a file that is there")
	})
	a.completeFlags(cmd, s)
	_ = cmd.RegisterFlagCompletionFunc("from", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return template.Names(), cobra.ShellCompDirectiveNoFileComp
	}) // the flag is there
	return cmd
}

// newFormat writes the file and says what to do next.
func (a *app) newFormat(s *settings, name string, f newFlags) error {
	src, err := template.Shipped(f.from)
	if err != nil {
		return &usageError{err, "--from takes a shipped format; cp copies a file"}
	}
	path := strings.TrimSuffix(name, ".tmpl") + ".tmpl"
	if base := filepath.Base(path); base == ".tmpl" || strings.HasSuffix(name, string(filepath.Separator)) {
		return &usageError{fmt.Errorf("%q is not a name for a format", name), "for example: stopgap format new mine"}
	}
	text := copied(f.from, string(src))
	if f.extends {
		text = extending(f.from)
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flag, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &usageError{fmt.Errorf("%s is there already", path), "choose another name, or overwrite it with --force"}
	case err != nil:
		return &usageError{err, "NAME is a file name, or a path in a folder that is there"}
	}
	_, err = file.WriteString(text)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil || s.quiet {
		return err
	}
	if !strings.ContainsRune(path, filepath.Separator) {
		path = "." + string(filepath.Separator) + path
	}
	_, err = fmt.Fprintf(a.stdout, `wrote %[1]s
change it, then
  stopgap format check %[1]s
  stopgap format show %[1]s
  stopgap run --format %[1]s "Why is the sky blue?"
`, path)
	return err
}

// headKeys explain the keys of a format's head. An example stands in the file,
// as a comment, where the key does not.
var headKeys = []struct{ key, help, example string }{
	{"description", "One line for lists of formats.", "what it is for"},
	{"extends", "A shipped format whose keys and blocks count where this file has none.", "qwen"},
	{"system", "The system message, where the user gives none.", "Answer in one sentence."},
	{"opening", `Who renders the prompt: the block "prompt" (no key), the model's own chat
template on its server (server), or the server's chat endpoint (chat).`, "server"},
	{"recognise", `Strings that all stand in a prompt of this format that a server has rendered;
opening: server goes on in the format whose strings it finds.`, "[<tools>, </tools>]"},
	{"call", `How calls are spelled.
kind: json, lines, xml, tags or python
open, close: the tags around a call (json, xml)
name, arguments: the keys of a JSON call, the labels of one in lines, or what
  the names follow in XML; the first is the one that models are told
bare: a turn that begins with JSON needs no open (json)
json5: the JSON may be JSON5 (json)
list: JSON calls stand in a list (json)
between: what parts the name from the arguments, NAME[ARGS]{…} (json)
body: open, close, argument, tool: text after the JSON, an argument of that tool
tags: one for each tool, with tag, tool, text (the argument that its text is),
  children (tag: argument), empty (kind tags)`, "{kind: json, open: <tool_call>, close: </tool_call>, name: [name], arguments: [arguments]}"},
	{"think", `The thinking part.
open, close: its tags; a label in a format with calls in lines
opened: the prompt ends in open
calls: calls inside of it count
continues: results stand inside the model's turn, and the thought goes on`, "{open: <think>, close: </think>}"},
	{"response", `What stands around a tool's result in the prompt (open, close). A model that
writes open has invented a result.`, "{open: <tool_response>, close: </tool_response>}"},
	{"answer", `The answer: after a marker, or between two tags (open, close). Without the key
it is the text of a turn without calls. optional: a turn with neither a call
nor the marker is an answer too.`, "{open: <answer>, close: </answer>}"},
	{"stops", `Where a turn ends. Each has a name, a literal or a regex, and means:
call (a call has been made), answer, end (the model ended its turn) or invented
(it begins to write a result). What matches stays unless strip is true, or from
strip_group on. outside_think: only outside of the thinking part. after: only
behind this text. single_call: only in runs with one call a turn.`, "[{name: end of turn, literal: <|im_end|>, strip: true, means: end}]"},
	{"reserved", `What text from users and tools must not bring into the prompt, beside the tags
above: strings anywhere, lines where they begin a line.`, "{strings: [<|im_start|>, <|im_end|>]}"},
	{"preserve", "Special tokens of the model that the server must show.", "[<think>, </think>]"},
	{"sampling", "temperature, top_p, top_k, min_p, presence_penalty, repeat_penalty; flags win.", "{temperature: 0.6, top_p: 0.95}"},
	{"max_tokens", "What the model may write in a turn.", "4096"},
	{"max_calls", "How often each tool may be called in a run.", "5"},
	{"single_call", "The model makes one call a turn.", "true"},
}

// blocksHelp explains the blocks, as a comment of the blocks.
const blocksHelp = `{{/* The blocks, in the language of Go's text/template:
       prompt    the beginning: .System .Question .Tools .Date .MaxCalls .Values,
                 up to the words that open the model's turn
       continue  what stands between two turns: .Results (each .Name .Content .Error
                 .ID), .Note, .Question, where .Open the turn was cut, and where
                 .InThink it ended inside the thinking part
       calls     calls as the model writes them: .Calls, each .Name .Arguments
                 .Pairs .Values
       force     the note that asks for the last answer (.Reason)
       nudge     the note for a turn that leads nowhere (.Kind)
       problem   what stands in for the result of a call that cannot be made
                 (.Kind .Message .Tools), without tags, which would be escaped
     Any other block is for {{template}}. Functions: json, trim, join, names and
     others. Print .Question, .Content and .Note whole. */}}
`

// headKey finds the line where a key of the head begins.
var headKey = regexp.MustCompile(`(?m)^([a-z_]+):`)

// copied is the file of a shipped format with its keys explained. What stands in
// it stays byte for byte, but for the comments above the first key, which tell
// how that format came about.
func copied(from, src string) string {
	head, blocks, found := strings.Cut(src, "\n---\n")
	if !found {
		head = strings.TrimSuffix(head, "\n")
	}
	text := map[string]string{}
	places := headKey.FindAllStringSubmatchIndex(head, -1)
	for i, p := range places {
		end := len(head)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		text[head[p[2]:p[3]]] = strings.TrimRight(head[p[0]:end], "\n") + "\n"
	}
	out := fmt.Sprintf("# A copy of the format %s. \"stopgap format check\" tells whether it works.\n", from) + explained(text)
	if found {
		out += "---\n" + blocksHelp + blocks
	}
	return out
}

// extending is a file that changes nothing of a shipped format yet.
func extending(from string) string {
	return fmt.Sprintf("# What is not said here is as in the format %s, its blocks included:\n", from) +
		fmt.Sprintf("# \"stopgap format show %s --source\" prints them. A block that is written here, below a\n", from) +
		"# line \"---\", takes the place of the one with its name.\n" +
		explained(map[string]string{"extends": "extends: " + from + "\n"})
}

// explained gives all keys with what they mean: those that have a text as it is,
// the others as comments.
func explained(text map[string]string) string {
	var b strings.Builder
	for _, k := range headKeys {
		fmt.Fprintf(&b, "\n# %s\n", strings.ReplaceAll(k.help, "\n", "\n# "))
		if own, ok := text[k.key]; ok {
			b.WriteString(own)
		} else {
			fmt.Fprintf(&b, "#%s: %s\n", k.key, k.example)
		}
	}
	return b.String()
}
