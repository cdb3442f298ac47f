package tokenizer

import (
	"iter"
	"strings"
	"unicode"
)

// A trie finds special tokens in a text: the leftmost, and of those that begin
// at one place the longest, as Hugging Face's library does. llama.cpp looks for
// longer tokens first, Ollama for those with smaller ids; the three differ only
// where one token begins inside another.
type trie struct {
	nodes []node
	trim  map[int32]trim
}

// A node is a prefix of special tokens.
type node struct {
	next map[byte]int32
	id   int32 // the token that ends here, or -1
}

// A trim says where a token takes the white space beside it.
type trim struct{ left, right bool }

// add puts a token into the trie, and makes the trie where there is none.
func (t *trie) add(spelling string, id int32, beside trim) *trie {
	if t == nil {
		t = &trie{nodes: []node{{id: -1}}, trim: make(map[int32]trim)}
	}
	at := int32(0)
	for i := range len(spelling) {
		next, ok := t.nodes[at].next[spelling[i]]
		if !ok {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{id: -1})
			if t.nodes[at].next == nil {
				t.nodes[at].next = make(map[byte]int32)
			}
			t.nodes[at].next[spelling[i]] = next
		}
		at = next
	}
	t.nodes[at].id = id
	if beside != (trim{}) {
		t.trim[id] = beside
	}
	return t
}

// cut yields the text between special tokens, each with the token that follows
// it, or with -1 at the end. Without a trie, all is text.
func (t *trie) cut(text string) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		if t == nil {
			yield(text, -1)
			return
		}
		from := 0
		for i := 0; i < len(text); {
			id, n := t.longest(text[i:])
			if n == 0 {
				i++
				continue
			}
			before, after := text[from:i], i+n
			if t.trim[id].left {
				before = strings.TrimRightFunc(before, unicode.IsSpace)
			}
			if t.trim[id].right {
				after += len(text[after:]) - len(strings.TrimLeftFunc(text[after:], unicode.IsSpace))
			}
			if !yield(before, id) {
				return
			}
			from, i = after, after
		}
		yield(text[from:], -1)
	}
}

// longest gives the longest token that the text begins with, and its length,
// zero where there is none.
func (t *trie) longest(text string) (id int32, n int) {
	at, id := int32(0), int32(-1)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			break
		}
		at = next
		if t.nodes[at].id >= 0 {
			id, n = t.nodes[at].id, i+1
		}
	}
	return id, n
}
