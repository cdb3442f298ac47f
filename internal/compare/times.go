package compare

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
