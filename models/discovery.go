package models

// A Finding is what was found at one address where a server may listen.
type Finding struct {
	Server string // "ollama", "llama-server", …
	URL    string
	Err    error // why there is no model here
}

func (f Finding) reason() string {
	if f.Err == nil {
		return "no model"
	}
	return f.Err.Error()
}
