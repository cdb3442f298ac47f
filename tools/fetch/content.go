package fetch

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// readable are the media types that are fetched: what tools/document can read.
var readable = []string{
	"text/html", "application/xhtml+xml", "application/pdf", "text/plain", "text/markdown", "text/csv", "text/tab-separated-values",
	"application/json", "application/ld+json", "text/xml", "application/xml", "application/rss+xml", "application/atom+xml",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/zip",
}

// vague are types that say nothing; the bytes decide.
var vague = []string{"", "application/octet-stream", "binary/octet-stream", "application/x-download", "unknown/unknown"}

// accepted is the Accept header.
const accepted = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1"

// contentType gives the type of a body: what the server says, as far as the
// bytes bear it out. What is nothing to read gives a *TypeError.
func contentType(host, header string, body []byte) (mediaType, charset string, err error) {
	told, params, _ := mime.ParseMediaType(header) // a broken parameter leaves the type
	told = strings.ToLower(told)
	sniffed, _, _ := strings.Cut(http.DetectContentType(body), ";")
	charset = strings.ToLower(params["charset"])
	office := strings.Contains(told, "officedocument")
	switch {
	case slices.Contains(vague, told):
		told = sniffed
	case sniffed == "application/pdf" || sniffed == "application/zip" && !office:
		told = sniffed // whatever the server calls it
	case office && sniffed != "application/zip", told == "application/pdf", told == "application/zip":
		return "", "", &TypeError{Host: host, Type: told + " that is none"}
	case strings.HasPrefix(sniffed, "text/"), office:
	case strings.HasPrefix(charset, "utf-16"), strings.HasPrefix(charset, "utf-32"): // zeros between the letters
	default:
		return "", "", &TypeError{Host: host, Type: sniffed + " under the name of " + told}
	}
	if strings.HasPrefix(told, "text/") && told != "text/css" && told != "text/javascript" {
		return told, charset, nil
	}
	if !slices.Contains(readable, told) {
		return "", "", &TypeError{Host: host, Type: told}
	}
	return told, charset, nil
}
