package compare

import (
	"slices"

	"stopgap/internal/batch"
	"stopgap/models"
)

// Times is what a comparison took: what differs from one time to the next and
// from one machine to another. It stands apart from the Report, which does not.
type Times struct {
	// Metrics are those that at least one configuration has a score of.
	Metrics []Metric `json:"metrics"`
	// Configurations are in the order of Report.Configurations.
	Configurations []ConfigurationTimes `json:"configurations"`
}

// ConfigurationTimes are those of a configuration.
type ConfigurationTimes struct {
	Name string `json:"name"`
	// Servers are those that the rollouts were made on, in alphabetical order.
	Servers []string `json:"servers"`
	// Scores are in the order of Times.Metrics; Values in that of Report.Items.
	Scores []Score `json:"scores"`
}

// Score gives the score of a configuration by a metric, nil for none.
func (c *ConfigurationTimes) Score(metric string) *Score {
	for i := range c.Scores {
		if c.Scores[i].Metric == metric {
			return &c.Scores[i]
		}
	}
	return nil
}

// ReadTimes gives the Times of a folder whose Report is r. The errors are those
// of Read.
func ReadTimes(dir string, r *Report) (*Times, error) {
	rd, err := read(dir)
	if err != nil {
		return nil, err
	}
	all, has := timing(), map[string]bool{}
	t := &Times{}
	for c := range min(len(rd.results), len(r.Configurations)) {
		conf := ConfigurationTimes{Name: r.Configurations[c].Name, Servers: rd.servers(c), Scores: []Score{}}
		correct := r.values(c, right(metrics(r.Rollouts), r.Primary))
		for _, m := range all {
			var s *Score
			if m.Key == "seconds_per_right" {
				s = ratio(m, rd.values(c, len(r.Items), seconds), correct)
			} else {
				s = newScore(m, rd.values(c, len(r.Items), m.Key))
			}
			if s != nil {
				has[m.Key] = true
				conf.Scores = append(conf.Scores, *s)
			}
		}
		t.Configurations = append(t.Configurations, conf)
	}
	t.Metrics = present(all, func(key string) bool { return has[key] })
	return t, nil
}

// values gives the mean of each item's rollouts by a metric of Times. There are
// n items in the Report; the folder may have got more since.
func (rd *reading) values(c, n int, key string) []*float64 {
	out := make([]*float64, n)
	for i := range min(n, len(rd.items)) {
		var list []float64
		for _, r := range rd.results[c][i] {
			if r == nil {
				continue
			}
			if v, ok := taken(r, key); ok {
				list = append(list, v)
			}
		}
		out[i] = mean(list)
	}
	return out
}

// taken gives what a rollout took, where that is known.
func taken(r *batch.Result, key string) (float64, bool) {
	var n models.Count
	switch key {
	case seconds:
		return r.Duration.Seconds(), true
	case "prompt":
		n = r.Usage.Prompt
	case "evaluated":
		n = r.Usage.Evaluated
	case "reused":
		n = r.Usage.Reused
	case "generated":
		n = r.Usage.Generated
	}
	return float64(n.N), n.Known
}

// servers are those that a configuration's rollouts were made on.
func (rd *reading) servers(c int) []string {
	out := []string{}
	for i := range rd.items {
		for _, r := range rd.results[c][i] {
			if r != nil && !slices.Contains(out, r.Server) {
				out = append(out, r.Server)
			}
		}
	}
	slices.Sort(out)
	return out
}
