package export

import "bytes"

// ignored is the label of an id that does not count, as PyTorch's cross entropy
// and Hugging Face's trainers have it.
const ignored = -100

// ids spells a conversation as token ids with a mask: those that were sent and
// streamed, or where prompts were sent as text those of the tokenizer.
func (e *Exporter) ids(r *rollout) ([]field, error) {
	if r.chats() {
		e.Counts.Chats++
		return nil, nil
	}
	if r.ids == nil && e.Tokenizer == nil {
		e.Counts.NoIDs++
		return nil, nil
	}
	d := e.draft(r)
	if d.ids == nil {
		if err := e.encode(r, &d); err != nil {
			return nil, err
		}
	} else if e.Tokenizer != nil {
		if _, err := e.spelled(r, d); err != nil {
			return nil, err
		}
	}
	if len(d.marks) == 0 {
		e.Counts.Nothing++
		return nil, nil
	}
	mask, labels := make([]int, len(d.ids)), make([]int, len(d.ids))
	for i := range labels {
		labels[i] = ignored
	}
	for _, s := range d.marks {
		e.Counts.Loss += s.to - s.from
		for i := s.from; i < s.to; i++ {
			mask[i], labels[i] = 1, d.ids[i]
		}
	}
	if e.LossMask {
		return []field{{"input_ids", d.ids}, {"loss_mask", mask}}, nil
	}
	return []field{{"input_ids", d.ids}, {"labels", labels}}, nil
}

// encode makes the ids of a text that was sent as text. An id counts where all
// of its bytes do: one that spans the model's text and another's is not what the
// model alone wrote.
func (e *Exporter) encode(r *rollout, d *draft) error {
	d.ids = e.Tokenizer.Encode(d.text, true)
	ends, err := e.spelled(r, *d)
	if err != nil {
		return err
	}
	at, s := 0, 0
	for i, end := range ends {
		for s < len(d.spans) && d.spans[s].to <= at {
			s++
		}
		if s < len(d.spans) && d.spans[s].from <= at && end <= d.spans[s].to {
			d.marks = append(d.marks, span{i, i + 1})
		}
		at = end
	}
	d.marks = merge(d.marks)
	return nil
}

// spelled makes sure that the ids spell the text, and gives the ends of their
// pieces, in bytes.
func (e *Exporter) spelled(r *rollout, d draft) ([]int, error) {
	at, ends := 0, make([]int, len(d.ids))
	for i, id := range d.ids {
		piece := e.Tokenizer.Bytes(id)
		if !bytes.HasPrefix([]byte(d.text[at:min(len(d.text), at+len(piece))]), piece) {
			return nil, r.fail(r.record(at), at, "byte", "the tokenizer spells the ids otherwise than the text: it is not the model's")
		}
		at += len(piece)
		ends[i] = at
	}
	if at < len(d.text) {
		return nil, r.fail(r.record(at), at, "byte", "the tokenizer's ids end before the text: it is not the model's")
	}
	return ends, nil
}

// record is the first request whose prompt has a byte of the text, or the last one.
func (r *rollout) record(at int) int {
	for _, x := range r.Exchanges {
		n := 0
		for _, s := range x.Prompt {
			n += len(s.Text)
		}
		if n > at {
			return x.Seq
		}
	}
	return r.Exchanges[len(r.Exchanges)-1].Seq
}
