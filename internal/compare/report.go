package compare

import (
	"stopgap/internal/eval/stats"
	"stopgap/runner"
)

// A Report is all that a comparison found, but for what it took in time, which
// is in Times. It follows from the folder alone and from nothing that differs
// between two times that the same comparison is made: made again, or killed
// and gone on with, it is the same Report, and encoding it as JSON gives the
// same bytes. Lists are never in an order that chance decides.
//
// All numbers are finite. What was not measured is nil or left out, never zero:
// a dataset without gold answers has no exact match, it does not have one of
// zero.
type Report struct {
	// Data names the dataset's file, without its folder; Shape is how its rows
	// are written.
	Data  string `json:"data"`
	Shape string `json:"shape"`
	// Date is the day that the prompts tell, YYYY-MM-DD.
	Date string `json:"date"`
	// Rollouts is how often each item is asked in each configuration.
	Rollouts int `json:"rollouts"`
	// Seeds is what the seeds of the rollouts follow from, see batch.Seed. A
	// rollout has the same seed in every configuration.
	Seeds string `json:"seeds"`
	// Primary is the Key of the metric that the comparison is about: its pairs
	// are corrected for how many they are, and items differ where it does. It is
	// empty where there is none, for lack of gold answers and of a judge.
	Primary string `json:"primary,omitempty"`
	// Bootstrap is how the intervals were drawn.
	Bootstrap Bootstrap `json:"bootstrap"`
	// Judge names the format and the model that judged answers, empty where none
	// did.
	Judge string `json:"judge,omitempty"`
	// Metrics are those that at least one configuration has a score of, in the
	// order in which they are shown.
	Metrics []Metric `json:"metrics"`
	// Configurations are those that are compared; the first is the baseline.
	Configurations []Configuration `json:"configurations"`
	// Pairs are all pairs of configurations: (0,1), (0,2), …, (1,2), …
	Pairs []Pair `json:"pairs,omitempty"`
	// Items are those that were asked, in the order of the dataset.
	Items []Item `json:"items"`
	// Warnings are sentences for people about what limits the report: rollouts
	// that are missing or failed, journals that are damaged, items without gold
	// answers. They hold text from outside.
	Warnings []string `json:"warnings,omitempty"`
}

// A Bootstrap is how intervals and probabilities were resampled: over items,
// each with the mean of its rollouts.
type Bootstrap struct {
	Seed  uint64  `json:"seed"`
	Draws int     `json:"draws"`
	Level float64 `json:"level"` // of the intervals, 0.95
}

// A Unit is what a metric counts.
type Unit string

// The units. A Share is from 0 to 1 and is best shown in percent.
const (
	Share   Unit = "share"
	Count   Unit = "count"
	Tokens  Unit = "tokens"
	Seconds Unit = "seconds"
)

// A Metric is one way to measure a configuration.
type Metric struct {
	Key  string `json:"key"`  // for programs: "exact_match"
	Name string `json:"name"` // for people: "exact match"
	// Group is the heading that the metric stands under.
	Group Group  `json:"group"`
	Unit  Unit   `json:"unit"`
	Help  string `json:"help"` // what it is, in a sentence
	// Higher says that more is better, Lower that less is. With neither it is no
	// merit.
	Higher bool `json:"higher,omitempty"`
	Lower  bool `json:"lower,omitempty"`
	// Pass says that a single rollout has 0 or 1.
	Pass bool `json:"pass,omitempty"`
	// Paired says that Pairs have a Test of it.
	Paired bool `json:"paired,omitempty"`
	of     int  // of pass@k: its k, at most Report.Rollouts
}

// A Group is a heading of metrics.
type Group string

// The groups, in their order.
const (
	Quality Group = "quality"
	AtK     Group = "several rollouts" // pass@k, avg@k, best@k
	Calling Group = "calls"
	Cost    Group = "cost"
)

// A Configuration is a format with a model, and what it reached.
type Configuration struct {
	// Name tells it from the others, as short as that goes: the format's name,
	// with the model's where there are several.
	Name   string `json:"name"`
	Format string `json:"format"`
	Model  string `json:"model"`
	// Folder is where its batch is, below the comparison's folder, with slashes.
	Folder string `json:"folder"`
	// Hash is that of its batch.Configuration.
	Hash string `json:"hash"`
	// Done is how many rollouts have their end, Failed how many of those ended by
	// an error, Missing how many have not been made.
	Done    int `json:"done"`
	Failed  int `json:"failed,omitempty"`
	Missing int `json:"missing,omitempty"`
	// Terminations counts how the rollouts ended, Problems what in their turns
	// was not as the format or the tools ask, by template.ProblemKind. Both are
	// in the order of what they count: the same for every configuration, without
	// those that no configuration has.
	Terminations []Tally `json:"terminations,omitempty"`
	Problems     []Tally `json:"problems,omitempty"`
	// Scores are in the order of Report.Metrics, without those that this
	// configuration has none of.
	Scores []Score `json:"scores"`
}

// A Tally counts a kind of thing.
type Tally struct {
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

// A Score is what a configuration reached by one metric.
type Score struct {
	Metric string `json:"metric"` // its Key
	// Items is how many items have a value.
	Items int `json:"items"`
	Interval
	// Values are those of the items, in the order of Report.Items: the mean of
	// the rollouts, null where there is none. Costs of a right answer have no
	// values.
	Values []*float64 `json:"values,omitempty"`
}

// An Interval is an estimate with its 95 % interval.
type Interval struct {
	stats.Interval
	// Unbounded says that there is no High: too many resamples had no right
	// answer to divide by.
	Unbounded bool `json:"unbounded,omitempty"`
	// Wilson says that the interval is Wilson's, because all items are alike and
	// a resampled one would have no width.
	Wilson bool `json:"wilson,omitempty"`
}

// A Pair is two configurations on the same items.
type Pair struct {
	// A and B are places in Report.Configurations. Differences are A minus B.
	A int `json:"a"`
	B int `json:"b"`
	// Tests are in the order of Report.Metrics, of those that are Paired and that
	// both configurations have.
	Tests []Test `json:"tests"`
	// AheadA are the places in Report.Items of those on which A is better by the
	// primary metric, AheadB those on which B is.
	AheadA []int `json:"ahead_a,omitempty"`
	AheadB []int `json:"ahead_b,omitempty"`
}

// A Test tells whether two configurations differ by a metric.
type Test struct {
	Metric string `json:"metric"` // its Key
	// Items is how many both have a value of.
	Items int `json:"items"`
	// Difference is the mean of A minus that of B over these items, and P its
	// two-sided probability where there is none, both by the paired bootstrap.
	Difference Interval `json:"difference"`
	P          float64  `json:"p"`
	// Holm is P adjusted for the number of pairs. Only the primary metric has it:
	// the others are to look at, not to decide by.
	Holm    *float64 `json:"holm,omitempty"`
	McNemar McNemar  `json:"mcnemar"`
	// TooFew is there where the primary metric's test found nothing and could
	// hardly have: the items are too few for a difference of this size.
	TooFew *TooFew `json:"too_few,omitempty"`
}

// A McNemar is McNemar's test over items. With one rollout an item is right or
// wrong, and this is the test as it stands in books. With several, and by metrics
// that are more than right or wrong, the item speaks for the configuration that
// did better on it: the sign test, of which McNemar's is a case. Items where both
// are alike do not count.
type McNemar struct {
	B int     `json:"b"` // items that speak for A
	C int     `json:"c"` // items that speak for B
	P float64 `json:"p"` // two-sided, by the exact binomial test
	// Chi2 is the chi-squared statistic with Edwards' continuity correction and
	// Chi2P its probability: the usual approximation, for comparison with others'
	// figures.
	Chi2  float64  `json:"chi2"`
	Chi2P float64  `json:"chi2_p"`
	Holm  *float64 `json:"holm,omitempty"` // P adjusted, as in Test
}

// A TooFew says how many items a difference like the observed one would need to
// be found in four of five times.
type TooFew struct {
	// Needed is how many, zero where no number is enough: there is no difference.
	Needed int `json:"needed,omitempty"`
	// Detectable is the smallest difference in accuracy that this many items would
	// show; 1 where they show none at all.
	Detectable float64 `json:"detectable"`
}

// An Item is a question, and what each configuration made of it. All of its
// texts come from outside.
type Item struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	// Answers are gold ones, any of which is right. Documents are those that the
	// answer comes from, by title or by id.
	Answers   []string `json:"answers,omitempty"`
	Documents []string `json:"documents,omitempty"`
	// Differs says that two configurations have different values of the primary
	// metric.
	Differs bool `json:"differs,omitempty"`
	// Runs are the rollouts, by configuration as in Report.Configurations and by
	// rollout; null where a rollout has not been made.
	Runs [][]*Run `json:"runs"`
}

// A Run is one rollout of an item.
type Run struct {
	Rollout int `json:"rollout"` // from 1
	Seed    int `json:"seed"`
	// Answer is the model's, as it was. Scored is what was scored of it, without
	// its citations; empty where that is the same.
	Answer string `json:"answer"`
	Scored string `json:"scored,omitempty"`
	// Scores are what the rollout has of Report.Metrics, by Key.
	Scores map[string]float64 `json:"scores"`
	// Verdict are the judge's words, where there is a judge.
	Verdict     string             `json:"verdict,omitempty"`
	Termination runner.Termination `json:"termination"`
	Error       string             `json:"error,omitempty"`
	Turns       int                `json:"turns"`
	Calls       int                `json:"calls"` // that named a tool, with those that it refused
	Invented    int                `json:"invented,omitempty"`
	Tokens      int                `json:"tokens"` // generated, as chunks of the stream
	// Problems counts problems by kind.
	Problems []Tally `json:"problems,omitempty"`
	// Journal is the file that has the whole run, below the comparison's folder,
	// with slashes. Segments reads it.
	Journal string `json:"journal"`
	// Damaged says why the journal could not be read; what comes from it is not
	// measured then.
	Damaged string `json:"damaged,omitempty"`
}

// Score gives the score of a configuration by a metric, nil for none.
func (c *Configuration) Score(metric string) *Score {
	for i := range c.Scores {
		if c.Scores[i].Metric == metric {
			return &c.Scores[i]
		}
	}
	return nil
}

// Test gives the test of a pair by a metric, nil for none.
func (p *Pair) Test(metric string) *Test {
	for i := range p.Tests {
		if p.Tests[i].Metric == metric {
			return &p.Tests[i]
		}
	}
	return nil
}

// Metric gives a metric by its key, nil for none.
func (r *Report) Metric(key string) *Metric {
	for i := range r.Metrics {
		if r.Metrics[i].Key == key {
			return &r.Metrics[i]
		}
	}
	return nil
}
