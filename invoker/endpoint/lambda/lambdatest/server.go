// Package lambdatest is a stand-in for the API of AWS Lambda, and for the part of STS that issues
// credentials of roles, for tests.
package lambdatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Call is one invocation of a function.
type Call struct {
	ARN       string
	AccessKey string // of the caller
	Region    string // that the request was signed for
	Payload   []byte
}

// Response is a response of the API.
type Response struct {
	Status   int    // 0 is 200
	Kind     string // of an error of the API, such as TooManyRequestsException
	After    string // for Retry-After
	Function string // error of the function, such as Unhandled; empty: none
	Payload  []byte
}

// Function is the implementation of a function.
type Function func(Call) Response

// Server is the API. All clients can assume roles, which have the access key ROLE.
type Server struct {
	URL string

	mu        sync.Mutex // covers the fields below
	functions map[string]Function
	roles     []string // that were assumed, with the external id if there is one
}

// Access keys of callers.
const (
	AccessKey     = "AKIDTEST"
	RoleAccessKey = "ROLE"
)

// Start serves the API until the test ends, and sets the environment of the process to use it.
func Start(t testing.TB) *Server {
	s := &Server{functions: map[string]Function{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	for name, value := range s.Environ() {
		t.Setenv(name, value)
	}
	return s
}

// Environ returns the environment variables with which a process uses the server.
func (s *Server) Environ() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.URL, "AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_PROFILE": "", "AWS_REGION": "",
	}
}

// Handle registers a function.
func (s *Server) Handle(arn string, f Function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.functions[arn] = f
}

// Roles returns the roles that were assumed.
func (s *Server) Roles() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roles
}

var credential = regexp.MustCompile(`Credential=([^/]+)/[0-9]+/([^/]+)/`)

// ServeHTTP serves a request to the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	arn, found := strings.CutPrefix(r.URL.Path, "/2015-03-31/functions/")
	if !found {
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.assume(w, r)
		return
	}
	c := Call{ARN: strings.TrimSuffix(arn, "/invocations"), Payload: body}
	if m := credential.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		c.AccessKey, c.Region = m[1], m[2]
	}
	s.mu.Lock()
	f := s.functions[c.ARN]
	s.mu.Unlock()
	a := Response{Status: http.StatusNotFound, Kind: "ResourceNotFoundException", Payload: []byte(`{"Message":"Function not found: ` + c.ARN + `"}`)}
	if f != nil {
		a = f(c)
	}
	a.write(w)
}

func (a *Response) write(w http.ResponseWriter) {
	for name, value := range map[string]string{"X-Amzn-Errortype": a.Kind, "Retry-After": a.After, "X-Amz-Function-Error": a.Function} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Payload)))
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = w.Write(a.Payload)
}

func (s *Server) assume(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("Action") != "AssumeRole" {
		http.Error(w, "unknown action", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.roles = append(s.roles, strings.TrimSpace(r.FormValue("RoleArn")+" "+r.FormValue("ExternalId")))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`, RoleAccessKey)
}

// Adapt converts a handler of events, as SDKs provide them, to a function. Errors become those of
// functions.
func Adapt[In, Out any](handle func(In) (Out, error)) Function {
	return func(c Call) Response {
		var in In
		err := json.Unmarshal(c.Payload, &in)
		if err == nil {
			var out Out
			if out, err = handle(in); err == nil {
				var payload []byte
				if payload, err = json.Marshal(out); err == nil {
					return Response{Payload: payload}
				}
			}
		}
		reason, _ := json.Marshal(map[string]string{"errorType": "Error", "errorMessage": err.Error()}) // a map of strings can be encoded
		return Response{Function: "Unhandled", Payload: reason}
	}
}
