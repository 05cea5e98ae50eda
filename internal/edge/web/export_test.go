package web

import (
	"archive/zip"
	"net/http"
)

// Panics is a page that fails in the worst way, behind what every page stands behind.
func Panics() http.Handler {
	return headers(false, recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("runtime error: nil pointer dereference")
	})))
}

// PanicsHalfWay is an archive that fails so after some papers.
func PanicsHalfWay(papers int) http.Handler {
	return headers(false, recovered(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := &archive{w: w, zip: zip.NewWriter(w)}
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", "attachment")
		for range papers {
			if err := out.put("paper.pdf", "%PDF-"); err != nil {
				panic(err)
			}
			if err := out.zip.Flush(); err != nil {
				panic(err)
			}
		}
		panic("runtime error: index out of range")
	})))
}
