package train

import (
	"encoding/json"
	"fmt"
	"strings"

	"stopgap/template"
	"stopgap/tools/corpus"
)

// realTools are the tools of package corpus, as a run offers them.
var realTools = func() []template.Tool {
	var out []template.Tool
	for _, t := range (&corpus.Index{}).Tools() {
		s := t.Spec()
		out = append(out, template.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return out
}()

func oneParameter(name, kind, about string) json.RawMessage {
	about = strings.ReplaceAll(about, `"`, "'")
	if about == "" {
		return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, name, kind, name))
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q,"description":%q}},"required":[%q]}`, name, kind, about, name))
}

// A finder is a search tool and the name of its parameter.
type finder struct {
	template.Tool
	parameter string
}

func (w *writer) finder() finder {
	if w.chance(0.25) {
		return finder{realTools[0], "query"}
	}
	names := strings.Fields("search find lookup look_up retrieve search_documents search_notes find_documents kb_search query_index library search_archive wiki file_search")
	parameters := strings.Fields("query query q text question words keywords input term topic")
	verb := pick(w, []string{"Search", "Look things up in", "Find lines in", "Search for facts in", "Query", "Searches", "Finds what is told in"})
	what := pick(w, []string{"the documents", "the user's documents", "the user's notes", "the archive", "a library of short texts", "the knowledge base", "the index", "a folder of files"})
	rest := pick(w, []string{"", " Gives the best hits.", " Returns lines with title, text and [id].", " Each line has an id.", " Use it for every fact."})
	p := pick(w, parameters)
	return finder{template.Tool{
		Name: pick(w, names), Description: verb + " " + what + "." + rest,
		Parameters: oneParameter(p, "string", pick(w, []string{"", "What to look for.", "A few words.", "The words to look for."})),
	}, p}
}

// Another tool does one thing with one value.
type other struct {
	template.Tool
	parameter string
	ask       func(w *writer) (question, value string)
	result    func(w *writer, value string) string
}

func (w *writer) other() other {
	name := w.coinedName
	switch w.IntN(7) {
	case 0:
		p := pick(w, []string{"expression", "input", "formula"})
		return other{template.Tool{Name: pick(w, []string{"calculator", "calculate", "compute"}), Description: pick(w, []string{"Does arithmetic.", "Calculates an expression.", "Evaluates arithmetic."}), Parameters: oneParameter(p, "string", "")}, p,
			func(w *writer) (string, string) {
				v := fmt.Sprintf("%d %s %d", w.IntN(1000), pick(w, []string{"+", "-", "*", "/"}), 1+w.IntN(99))
				return pick(w, []string{"What is ", "How much is ", "Calculate ", "Compute "}) + v + "?", v
			},
			func(w *writer, _ string) string { return fmt.Sprint(w.IntN(99999)) }}
	case 1:
		p := pick(w, []string{"city", "place", "location", "town"})
		return other{template.Tool{Name: pick(w, []string{"weather", "get_weather", "weather_now"}), Description: pick(w, []string{"Tells the weather of a place.", "The weather in a city now."}), Parameters: oneParameter(p, "string", "")}, p,
			func(w *writer) (string, string) {
				v := name()
				return pick(w, []string{"What is the weather in ", "How is the weather in ", "What is the weather like in "}) + v + "?", v
			},
			func(w *writer, _ string) string {
				return pick(w, []string{"rain", "sun", "snow", "fog", "wind"}) + fmt.Sprintf(", %d degrees", w.IntN(40))
			}}
	case 2:
		p := pick(w, []string{"text", "sentence", "input"})
		return other{template.Tool{Name: pick(w, []string{"translate", "translator"}), Description: "Translates a text.", Parameters: oneParameter(p, "string", "")}, p,
			func(w *writer) (string, string) {
				v := w.coined() + " " + w.coined()
				return "Translate " + v + ".", v
			},
			func(w *writer, _ string) string { return w.coined() + " " + drawn(w, nouns) }}
	case 3:
		p := pick(w, []string{"city", "place", "zone"})
		return other{template.Tool{Name: pick(w, []string{"clock", "get_time", "time_in"}), Description: "Tells what time it is in a place.", Parameters: oneParameter(p, "string", "")}, p,
			func(w *writer) (string, string) { v := name(); return "What time is it in " + v + "?", v },
			func(w *writer, _ string) string { return fmt.Sprintf("%02d:%02d", w.IntN(24), w.IntN(60)) }}
	}
	// A tool that nobody has seen: its description says what it knows.
	n := w.word(nouns)
	k := drawn(w, kinds)
	p := pick(w, []string{"name", k, "input", "of"})
	return other{template.Tool{Name: pick(w, []string{"get_", "", "find_", "tell_"}) + n, Description: pick(w, []string{"Gives the " + n + " of a " + k + ".", "Tells the " + n + " of any " + k + ".", "Knows every " + k + "'s " + n + "."}), Parameters: oneParameter(p, "string", "")}, p,
		func(w *writer) (string, string) {
			v := name()
			return pick(w, []string{"What is the " + n + " of the " + k + " " + v + "?", "Give me the " + n + " of the " + k + " " + v + "."}), v
		},
		func(w *writer, _ string) string {
			return pick(w, []string{drawn(w, plain), fmt.Sprint(w.IntN(500)), name()})
		}}
}

// extras are tools that a question does not need.
func (w *writer) extras(n int) []template.Tool {
	var out []template.Tool
	seen := map[string]bool{}
	for range n {
		if o := w.other(); !seen[o.Name] {
			seen[o.Name] = true
			out = append(out, o.Tool)
		}
	}
	return out
}

// talk is small talk: nothing to look up.
func (w *writer) talk() exchange {
	pairs := [][2]string{
		{"Hello!", "Hello! Ask me something that the documents tell."}, {"Hi", "Hello! Ask me something that the documents tell."},
		{"Good morning.", "Hello! Ask me something that the documents tell."}, {"Hey there!", "Hello! Ask me something that the documents tell."},
		{"Thank you!", "You are welcome."}, {"Thanks, that helps.", "You are welcome."}, {"Many thanks", "You are welcome."},
		{"Who are you?", "I am a small model inside stopgap. I answer from documents."}, {"What can you do?", "I am a small model inside stopgap. I answer from documents."},
		{"Goodbye.", "Goodbye."}, {"Bye!", "Goodbye."}, {"你好", "你好！请问我文件里的事情。"}, {"谢谢！", "不客气。"},
	}
	p := pick(w, pairs)
	return exchange{kind: Talk, question: p[0], answer: p[1]}
}
