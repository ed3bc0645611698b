package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"platform/internal/httpserver"
)

// Prefix is the path below which the UI is served.
const Prefix = "/ui/"

const (
	index = "index.html"
	// versionMark is replaced by the version of the files in index.html.
	versionMark = "__VERSION__"
)

// Options are the settings of a Handler.
type Options struct {
	// Ingress returns the address of the ingress for the client of a request: pages may
	// call it, in addition to their own origin. Optional.
	Ingress func(*http.Request) string
}

// Handler serves the UI: the embedded files, and index.html for all other paths, whose
// meaning only the application knows.
type Handler struct {
	files   map[string]*file // by name
	version string           // of all files
	options Options
}

// file is an embedded file with the representations that can be sent.
type file struct {
	contentType string
	plain, gzip []byte
	etag        string // without quotes
}

// New returns the handler of the embedded UI; nil if the program was built without it.
func New(options Options) *Handler {
	if dist == nil {
		return nil
	}
	h, err := newHandler(dist, options)
	if err != nil {
		panic(err) // the embedded files cannot be read
	}
	return h
}

func newHandler(dist fs.FS, options Options) (*Handler, error) {
	h := &Handler{files: map[string]*file{}, options: options}
	content := map[string][]byte{}
	all := sha256.New()
	// WalkDir visits the files in lexical order, so the version depends on them only.
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dist, name)
		content[name] = data
		all.Write([]byte(name))
		all.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.version = hex.EncodeToString(all.Sum(nil))[:16]
	for name, data := range content {
		if name == index {
			data = bytes.ReplaceAll(data, []byte(versionMark), []byte(h.version))
		}
		h.files[name] = newFile(name, data)
	}
	if h.files[index] == nil {
		return nil, fs.ErrNotExist
	}
	return h, nil
}

func newFile(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	f := &file{contentType: contentType(name), plain: data, etag: hex.EncodeToString(sum[:8])}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	_, _ = w.Write(data)                                       // to memory
	_ = w.Close()
	if packed.Len() < len(data) {
		f.gzip = packed.Bytes()
	}
	return f
}

// contentType does not depend on the MIME tables of the machine for the types that the UI
// consists of.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		if t := mime.TypeByExtension(ext); t != "" {
			return t
		}
	}
	return "application/octet-stream"
}

// Serves reports whether a request is for the UI: its path is /ui or below, or it reads /.
func Serves(r *http.Request) bool {
	p := r.URL.Path
	if p == "/" {
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return p == strings.TrimSuffix(Prefix, "/") || strings.HasPrefix(p, Prefix)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, `{"message":"the web UI is read with GET","platform_code":null}`) // fails only if the client has closed the connection
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Prefix)
	if !below {
		target := url.URL{Path: Prefix, RawQuery: r.URL.RawQuery}
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, target.String(), http.StatusPermanentRedirect)
		return
	}
	f := h.files[name]
	if f == nil {
		f = h.files[index]
	}
	h.send(w, r, f)
}

func (h *Handler) send(w http.ResponseWriter, r *http.Request, f *file) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Content-Security-Policy", h.policy(r))
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache")
	if v := r.URL.Query().Get("v"); v == h.version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, etag := f.plain, `"`+f.etag+`"`
	if f.gzip != nil && httpserver.AcceptsGzip(r.Header) {
		body, etag = f.gzip, `"`+f.etag+`-gz"`
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the client has gone
	}
}

// policy is the content security policy: everything is from this origin, but pages may call
// handlers through the ingress, which has a port of its own.
func (h *Handler) policy(r *http.Request) string {
	connect := "'self'"
	if h.options.Ingress != nil {
		if origin := originOf(h.options.Ingress(r)); origin != "" {
			connect += " " + origin
		}
	}
	return "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " + connect +
		"; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}

// originOf is the origin of an HTTP address; empty if it has none that can be part of a
// policy.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"*") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// matches reports whether a list of entity tags contains one.
func matches(list, etag string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
