package web

import "net/http"

// Panics is a page that fails in the worst way, behind what every page stands behind.
func Panics() http.Handler {
	return headers(false, recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("runtime error: nil pointer dereference")
	})))
}
