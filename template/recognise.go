package template

import "strings"

// Recognise tells from an opening that a server has rendered which of the
// shipped formats its model uses: the one all of whose strings stand in the
// text (the head's recognise), the longest in sum where several do. The error
// is a *FormatError.
func Recognise(opening string) (*Format, error) {
	var best *Format
	most := 0
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			return nil, err
		}
		if n := f.recognises(opening); n > most {
			best, most = f, n
		}
	}
	if best == nil {
		return nil, &FormatError{Name: string(OpenServer), Msg: "the model's chat template is like none of the shipped formats"}
	}
	return best, nil
}

// recognises gives the bytes of the format's strings, zero if one is missing or
// if the opening begins the thinking part and the format does not, or the
// other way round.
func (f *Format) recognises(opening string) int {
	n := 0
	if think := f.Think.Open; f.Think.Close != "" && f.Think.Opened != strings.HasSuffix(strings.TrimSpace(opening), think) {
		return 0
	}
	for _, r := range f.Head.Recognise {
		if !strings.Contains(opening, r) {
			return 0
		}
		n += len(r)
	}
	return n
}
