package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"

	"usher/internal/base/problem"
)

// Pico CSS 2.1.1 comes from the npm package @picocss/pico, htmx 2.0.11 from htmx.org, each with its licence.
//
//go:embed assets
var assets embed.FS

// served are the files that a browser may ask for, with the digest that stands in their links.
var served = func() map[string]servedFile {
	files := map[string]servedFile{}
	for _, name := range []string{
		"pico.min.css", "usher.css", "account.css", "candidates.css", "counter.css", "counter.js", "shop.css", "shop.js", "own.css", "own.js", "own_worker.js", "icon.svg", "htmx.min.js", "usher.js", "pico.LICENSE.md", "htmx.LICENSE.md",
	} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic("an asset is missing: " + err.Error())
		}
		digest := sha256.Sum256(content)
		files[name] = servedFile{content, hex.EncodeToString(digest[:8])}
	}
	return files
}()

type servedFile struct {
	content []byte
	digest  string
}

// assetURL changes with the file's content, so that a browser may keep the file for ever.
func assetURL(name string) string { return "/assets/" + name + "?v=" + served[name].digest }

func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	file, ok := served[name]
	if !ok {
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" || path.Ext(name) == ".md" {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", `"`+file.digest+`"`)
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == file.digest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}
