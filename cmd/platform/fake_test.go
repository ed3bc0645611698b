package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// fakeServer responds like the admin API and the ingress, with fixed content. A script can replace
// single responses by files answers/<METHOD>_<path with dots>.
type fakeServer struct {
	*httptest.Server
	dir string // of the script

	mu       sync.Mutex // covers requests
	requests []string
}

// requested returns how often a path was requested.
func (f *fakeServer) requested(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.requests {
		if strings.HasPrefix(line, http.MethodGet+" "+path) {
			n++
		}
	}
	return n
}

func newFakeServer(dir string) *fakeServer {
	f := &fakeServer{dir: dir}
	f.Server = httptest.NewServer(f)
	return f
}

// ServeHTTP records the request and responds to it.
func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.note(r, body)
	if r.URL.Path == "/query" && f.query(w, string(body)) {
		return
	}
	if name := f.replacement(r); name != "" {
		f.answerFile(w, name)
		return
	}
	if r.URL.Path == "/query" {
		write(w, http.StatusOK, `{"rows":[]}`)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/platform/") {
		f.ingress(w, r, string(body))
		return
	}
	answer, ok := adminAnswers[r.Method+" "+r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/services/Fading") {
		// Present twice, then absent.
		answer, ok = adminAnswers["GET /services/Fading"], f.requested(r.URL.Path) <= 2
	}
	if r.URL.Path == "/services/Flickering" {
		// Present, unavailable, present again, then absent.
		n := f.requested(r.URL.Path)
		if n == 2 {
			write(w, http.StatusServiceUnavailable, `{"message":"the server is stopping","platform_code":null}`)
			return
		}
		answer, ok = adminAnswers["GET /services/Fading"], n <= 3
	}
	if r.Method == http.MethodPost && r.URL.Path == "/deployments" {
		answer, ok = registered(body), true
	}
	if !ok {
		write(w, http.StatusNotFound, fmt.Sprintf(`{"message":"The requested resource '%s' does not exist","platform_code":null}`, r.URL.Path))
		return
	}
	status := http.StatusOK
	switch r.Method {
	case http.MethodPost:
		status = http.StatusCreated
	case http.MethodDelete:
		status = http.StatusAccepted
	}
	write(w, status, answer)
}

// query responds to an SQL query with the first file in queries/ whose first line is part of it, and
// reports whether there is one.
func (f *fakeServer) query(w http.ResponseWriter, body string) bool {
	files, _ := filepath.Glob(f.dir + "/queries/*")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		part, answer, _ := strings.Cut(string(text), "\n")
		if strings.Contains(body, part) {
			write(w, http.StatusOK, answer)
			return true
		}
	}
	return false
}

// note records a request for the command requests. Those that never get a response are left out: the
// time limit of the client may end before they arrive.
func (f *fakeServer) note(r *http.Request, body []byte) {
	if strings.Contains(r.URL.Path, "/Silent/") {
		return
	}
	line := r.Method + " " + r.URL.RequestURI()
	for _, name := range []string{"Content-Type", "Idempotency-Key", "Authorization", "X-Test", "X-Platform-Limit-Key", "X-Platform-Priority"} {
		if value, given := r.Header[name]; given {
			line += fmt.Sprintf(" %s=%s", strings.ToLower(name), value[0])
		}
	}
	if len(body) > 0 {
		line += " " + string(body)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, line)
}

// log returns the requests so far, one per line, and clears them.
func (f *fakeServer) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(append(f.requests, ""), "\n")
	f.requests = nil
	return text
}

func (f *fakeServer) replacement(r *http.Request) string {
	name := f.dir + "/answers/" + r.Method + strings.ReplaceAll(r.URL.Path, "/", ".")
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}

// answerFile responds with a file: a line with the status, then the body.
func (f *fakeServer) answerFile(w http.ResponseWriter, name string) {
	text, _ := os.ReadFile(name)
	first, body, _ := strings.Cut(string(text), "\n")
	status := http.StatusInternalServerError
	_, _ = fmt.Sscan(first, &status)
	write(w, status, strings.TrimSuffix(body, "\n"))
}

func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// registered responds to a registration like a server that does not know the address.
func registered(body []byte) string {
	var request struct{ URI string }
	_ = json.Unmarshal(body, &request)
	return `{"id":"dp_1new","services":[` + greeter(2, "dp_1new") + `,` + mailer + `],"min_protocol_version":5,"max_protocol_version":6,"sdk_version":"sdk-go/1.2.0"}`
}

func (f *fakeServer) ingress(w http.ResponseWriter, r *http.Request, body string) {
	w.Header().Set("x-platform-id", "inv_1abc")
	switch {
	case strings.Contains(r.URL.Path, "/Silent/"):
		<-r.Context().Done()
	case strings.Contains(r.URL.Path, "/Breaking/"):
		panic(http.ErrAbortHandler)
	case strings.HasPrefix(r.URL.Path, "/platform/scope/acme/call/"):
		write(w, http.StatusOK, body)
	case strings.HasPrefix(r.URL.Path, "/platform/call/Greeter/"):
		write(w, http.StatusOK, `"Hello `+strings.Trim(body, `"`)+`"`)
	case strings.HasPrefix(r.URL.Path, "/platform/call/Raw/"):
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0xff, 0x00, 'x'})
	case strings.HasPrefix(r.URL.Path, "/platform/call/Failing/"):
		w.Header().Set("x-platform-error-source", "invocation")
		write(w, http.StatusTeapot, `{"code":418,"message":"no \u001b[31mcoffee","source":"invocation"}`)
	case strings.HasPrefix(r.URL.Path, "/platform/call/Missing/"):
		write(w, http.StatusNotFound, `{"code":404,"message":"no such order","source":"invocation"}`)
	case strings.HasPrefix(r.URL.Path, "/platform/send/"), strings.HasPrefix(r.URL.Path, "/platform/scope/a c/send/"):
		write(w, http.StatusAccepted, `{"invocationId":"inv_1abc","status":"Accepted"}`)
	case strings.HasPrefix(r.URL.Path, "/platform/awakeables/sign_1"), strings.HasPrefix(r.URL.Path, "/platform/invocation/inv_1"):
		write(w, http.StatusAccepted, "")
	case r.URL.Path == "/platform/attach" || r.URL.Path == "/platform/attach/inv_1abc":
		write(w, http.StatusOK, `{"done":true}`)
	case r.URL.Path == "/platform/output" || r.URL.Path == "/platform/output/inv_1abc":
		write(w, 470, `{"code":470,"message":"the invocation exists but has not completed yet","source":"ingress"}`)
	default:
		write(w, http.StatusNotFound, `{"code":404,"message":"service not found, make sure to register the service before calling it","source":"ingress"}`)
	}
}

// fakePlatformServer stands in for the real server in tests of dev: it prints its settings,
// responds to the health check, and ends on SIGTERM.
func fakePlatformServer() {
	if os.Getenv("FAKE_EXIT") != "" {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	dir := os.Getenv("PLATFORM_BASE_DIR")
	if err := os.WriteFile(dir+"/data", nil, 0o600); err != nil {
		panic(err)
	}
	if ip := os.Getenv("PLATFORM_BIND_IP"); ip != "127.0.0.1" {
		fmt.Fprintln(os.Stderr, "fake server listens on", ip)
	}
	listening := http.Server{
		Addr:    os.Getenv("PLATFORM_BIND_IP") + ":" + os.Getenv("PLATFORM_ADMIN__BIND_PORT"),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	go func() { _ = listening.ListenAndServe() }()
	fmt.Fprintln(os.Stderr, "fake server got", <-stop)
}
