package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/research/bank"
	"stopgap/internal/research/cite"
)

func (a *app) bankCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bank COMMAND",
		Short: "Look at what was read for research: summaries, their evidence and their pages",
		Long: `Look into the bank that "stopgap research" keeps: what was read for which goal,
under which number it is cited, and the page that it is from.`,
		Example: "  stopgap bank show bank.db\n  stopgap bank show bank.db 3",
		Args:    noSuchCommandOf,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.bankShowCommand())
	return cmd
}

func (a *app) bankShowCommand() *cobra.Command {
	s := newSettings()
	var asJSON, page bool
	cmd := &cobra.Command{
		Use: "show FILE [NUMBER]...", Short: "List the summaries of a bank, or show some of them whole",
		Aliases: []string{"list"},
		Long: `List the summaries of a bank, a line each: number, title, source, tokens and
goal. With numbers, show these whole, and whether the evidence of each stands in
its page. A bank may be looked at while a research adds to it.`,
		Example: `  stopgap bank show bank.db
  stopgap bank show bank.db 3 7
  stopgap bank show bank.db 3 --page
  stopgap bank show bank.db --json | jq 'select(.verdict != "ok") | .number'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return &usageError{errors.New("show takes the file of a bank"), `"stopgap research" makes one in the folder of its research, or where --bank says`}
		},
		ValidArgsFunction: completeBank,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			numbers, err := bankNumbers(args[1:], page, asJSON)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			b, err := bank.Read(ctx, args[0])
			if err != nil {
				return bankError(err)
			}
			defer b.Close()
			return bankError(a.showBank(ctx, s, b, args[0], numbers, asJSON, page))
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace", "quiet")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print one JSON object a summary, with the verdict on its evidence")
		f.BoolVar(&page, "page", false, "print the text of the page that the summary is of, and nothing else")
	})
	return cmd
}

// bankNumbers reads the numbers of summaries.
func bankNumbers(args []string, page, asJSON bool) ([]int, error) {
	var out []int
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return nil, &usageError{fmt.Errorf("%q is no number of a summary", arg), "without numbers, \"stopgap bank show FILE\" lists them"}
		}
		out = append(out, n)
	}
	if page && asJSON {
		return nil, &usageError{errors.New("--page and --json print different things"), "use one of them"}
	}
	if page && len(out) != 1 {
		return nil, &usageError{errors.New("--page prints the page of one summary"), "name one: stopgap bank show FILE 3 --page"}
	}
	return out, nil
}

// bankError gives the errors of a bank their hints.
func bankError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &usageError{err, `"stopgap research" makes a bank in the folder of its research, or where --bank says`}
	case errors.Is(err, bank.ErrDamaged):
		return &usageError{err, "what its summaries say cannot be trusted any more; take a copy of it from before"}
	case errors.Is(err, bank.ErrVersion):
		return &usageError{err, "look at it with the version of stopgap that made it"}
	case is[*bank.Error](err):
		return &usageError{err, `name a file that "stopgap research" has made: bank.db in the folder of its research, or that of --bank`}
	}
	return err
}

func (a *app) showBank(ctx context.Context, s *settings, b *bank.Bank, file string, numbers []int, asJSON, page bool) error {
	list, err := chosen(ctx, b, file, numbers)
	switch {
	case err != nil:
		return err
	case page:
		return a.showPage(ctx, b, list[0])
	case asJSON:
		for _, sum := range list {
			row, err := lookedAt(ctx, b, sum)
			if err == nil {
				err = a.printJSON(row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case len(numbers) == 0:
		return a.listBank(list)
	}
	for i, sum := range list {
		row, err := lookedAt(ctx, b, sum)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		a.showSummaryOf(s, row)
	}
	return nil
}

// chosen gives the summaries of these numbers, or all.
func chosen(ctx context.Context, b *bank.Bank, file string, numbers []int) ([]bank.Summary, error) {
	if len(numbers) == 0 {
		return b.Since(ctx, 0)
	}
	list, unknown, err := b.Get(ctx, numbers...)
	if err != nil || len(unknown) == 0 {
		return list, err
	}
	last, err := b.Last(ctx)
	if err != nil {
		return nil, err
	}
	hint := fmt.Sprintf("it has 1 to %d", last)
	if last == 0 {
		hint = "it has none yet"
	}
	return nil, &usageError{fmt.Errorf("%s has no summary %d", file, unknown[0]), hint}
}

// A bankRow is a summary, and how its evidence stands.
type bankRow struct {
	bank.Summary
	cite.Finding
	PageBytes int `json:"page_bytes,omitempty"`
}

func lookedAt(ctx context.Context, b *bank.Bank, sum bank.Summary) (bankRow, error) {
	p, err := b.Page(ctx, sum.Page)
	if err != nil && !errors.Is(err, bank.ErrNoPage) {
		return bankRow{}, err
	}
	return bankRow{sum, cite.NewPage(p.Text).Look(sum.Evidence), p.Bytes}, nil
}

func (a *app) listBank(list []bank.Summary) error {
	w := io.Writer(a.stdout)
	if isTerminal(a.stdout) { // otherwise plain tabs, for cut and awk
		columns := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		defer columns.Flush()
		w = columns
	}
	for _, sum := range list {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n", sum.Number, cell(sum.Title), cell(sum.Source), sum.Tokens, cell(sum.Goal))
	}
	return nil
}

// cell is a text in one line of a table.
func cell(text string) string { return printable(strings.Join(strings.Fields(text), " ")) }

func (a *app) showSummaryOf(s *settings, row bankRow) {
	screen := a.screen(a.stdout, s.color)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(a.stdout, "%s %s\n", screen.paint(dim, fmt.Sprintf("%-9s", name)), text)
		}
	}
	fmt.Fprintln(a.stdout, screen.paint(bold, fmt.Sprintf("%d  %s", row.Number, cell(row.Title))))
	line("source", cell(row.Source))
	line("question", cell(row.Question))
	line("goal", cell(row.Goal))
	line("read", row.Time.Format("2006-01-02 15:04:05"))
	page := "not kept"
	if row.PageBytes > 0 {
		page = fmt.Sprintf("%d bytes", row.PageBytes)
	}
	line("page", page)
	colour := yellow
	if row.Verdict == cite.Supported {
		colour = green
	}
	words := row.Words()
	if row.Absent != "" {
		words += "; not found: " + strconv.Quote(row.Absent)
	}
	line("verdict", screen.paint(colour, cell(words)))
	for _, part := range []struct{ name, text string }{{"rational", row.Rational}, {"evidence", row.Evidence}, {"summary", row.Summary.Summary}} {
		if part.text != "" {
			fmt.Fprintf(a.stdout, "\n%s\n%s\n", screen.paint(dim, part.name), printable(part.text))
		}
	}
}

// showPage prints a page as it is kept.
func (a *app) showPage(ctx context.Context, b *bank.Bank, sum bank.Summary) error {
	p, err := b.Page(ctx, sum.Page)
	if errors.Is(err, bank.ErrNoPage) {
		return &usageError{fmt.Errorf("the page of summary %d is not kept", sum.Number), "a page without text is not"}
	}
	if err != nil {
		return err
	}
	text := p.Text
	if isTerminal(a.stdout) {
		text = printable(text)
	}
	if _, err := io.WriteString(a.stdout, text); err != nil {
		return err
	}
	if p.Bytes > len(p.Text) {
		a.note("the page had %d bytes; its first %d are kept", p.Bytes, len(p.Text))
	}
	return nil
}

// completeBank offers the file, then the numbers that are in it.
func completeBank(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
	defer cancel()
	b, err := bank.Read(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer b.Close()
	list, err := b.Since(ctx, 0)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, sum := range list {
		out = append(out, fmt.Sprintf("%d\t%s", sum.Number, cell(sum.Title)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
