package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/invoker/discovery"
	"platform/metadata"
)

// plans is a registry that knows what one registration makes and never changes.
type plans struct{ schemas *metadata.Schemas }

func (plans) Jobs() []metadata.Job { return nil }

func (plans) Job(string) (metadata.Job, bool) { return metadata.Job{}, false }

func (plans) CreateJob(_ context.Context, job metadata.Job) (metadata.Job, error) { return job, nil }

func (plans) StopJob(context.Context, string) (metadata.Job, error) {
	return metadata.Job{}, metadata.ErrJobNotFound
}

func (plans) FailureMarks() []metadata.FailureMark { return nil }

func (plans) FailureMark(string) (metadata.FailureMark, bool) { return metadata.FailureMark{}, false }

func (plans) MarkFailure(context.Context, metadata.FailureMarkEdit) (metadata.FailureMark, error) {
	return metadata.FailureMark{}, nil
}

func (plans) Tokens() []metadata.Token { return nil }

func (plans) ConfirmedTokens(context.Context) ([]metadata.Token, error) { return nil, nil }

func (plans) Token(string) (metadata.Token, bool) { return metadata.Token{}, false }

func (plans) CreateToken(_ context.Context, token metadata.Token) (metadata.Token, error) {
	return token, nil
}

func (plans) RevokeToken(context.Context, string) (metadata.Token, error) {
	return metadata.Token{}, metadata.ErrTokenNotFound
}

func (plans) RecordAction(context.Context, metadata.Action) error { return nil }

func (plans) Audit(uint64, int) ([]metadata.AuditRecord, error) { return nil, nil }
func (plans) VerifyAudit() (metadata.AuditState, error)         { return metadata.AuditState{}, nil }

func (p plans) Schemas() *metadata.Schemas        { return p.schemas }
func (p plans) Cluster() (metadata.Cluster, bool) { return metadata.Cluster{}, false }
func (p plans) Nodes() []metadata.Node            { return nil }

func (p plans) RegisterDeployment(_ context.Context, r metadata.Registration) (metadata.Registered, error) {
	return p.PlanDeployment(r)
}

func (p plans) PlanDeployment(r metadata.Registration) (metadata.Registered, error) {
	return p.schemas.Plan(r, r.Deployment.CreatedAt)
}

func (p plans) UpdateDeployment(_ context.Context, u metadata.Update) (*metadata.Deployment, error) {
	return p.PlanUpdate(u)
}

func (p plans) PlanUpdate(u metadata.Update) (*metadata.Deployment, error) {
	return p.schemas.PlanUpdate(u)
}

func (p plans) DeleteDeployment(context.Context, ids.Deployment) error { return nil }

func (p plans) Secrets() metadata.SecretsState        { return metadata.SecretsState{} }
func (p plans) Authority() (metadata.Authority, bool) { return metadata.Authority{}, true }
func (p plans) JoinTokens() []metadata.JoinToken      { return nil }
func (p plans) PutAuthority(context.Context, []byte, string) error {
	return nil
}

func (p plans) CreateJoinToken(_ context.Context, t metadata.JoinToken, _ time.Duration) (metadata.JoinToken, error) {
	return t, nil
}

func (p plans) RevokeJoinToken(context.Context, string) (metadata.JoinToken, error) {
	return metadata.JoinToken{}, nil
}
func (p plans) RotateSecrets(context.Context) (int, error) { return 0, nil }

func (p plans) ModifyService(_ context.Context, name string, o metadata.Options) (*metadata.Service, error) {
	changed := *p.schemas.Services[name]
	changed.Options = changed.Options.With(&o)
	return &changed, nil
}

func (p plans) Rules() (*flowcontrol.Book, <-chan struct{}) { return &flowcontrol.Book{}, nil }

func (p plans) PutRules(_ context.Context, changes []flowcontrol.Change) ([]flowcontrol.Rule, error) {
	_, rules, err := (&flowcontrol.Book{}).Put(changes, 1)
	if err != nil {
		return nil, metadata.ErrRulePrecondition
	}
	return rules, nil
}

func (p plans) DeleteRules(_ context.Context, removals []flowcontrol.Removal) ([]flowcontrol.Pattern, error) {
	_, removed, err := (&flowcontrol.Book{}).Delete(removals)
	if err != nil {
		return nil, metadata.ErrRulePrecondition
	}
	return removed, nil
}

func (plans) Subscriptions() ([]subscription.Subscription, <-chan struct{}) { return nil, nil }

func (plans) NewSubscriptionID() string { return ids.NewSubscription([16]byte{1}) }

func (plans) CreateSubscription(_ context.Context, s subscription.Subscription) (subscription.Subscription, error) {
	return s, s.Check()
}

func (plans) ChangeSubscription(context.Context, string, func(subscription.Subscription) (subscription.Subscription, error)) (subscription.Subscription, error) {
	return subscription.Subscription{}, metadata.ErrSubscriptionNotFound
}

func (plans) RemoveSubscription(context.Context, string) error { return nil }

func (plans) KafkaClusters() []subscription.Cluster { return nil }

func (plans) CreateKafkaCluster(_ context.Context, c subscription.Cluster) (subscription.Cluster, error) {
	return c, c.Check()
}

func (plans) ChangeKafkaCluster(context.Context, string, func(map[string]string) (map[string]string, error)) (subscription.Cluster, error) {
	return subscription.Cluster{}, metadata.ErrClusterNotFound
}

func (plans) DeleteKafkaCluster(context.Context, string, bool) error {
	return metadata.ErrClusterNotFound
}

func (p plans) SetReplication(context.Context, int) (metadata.Cluster, error) {
	return metadata.Cluster{}, nil
}

func (p plans) DrainNode(_ context.Context, id uint32, _ bool) (metadata.Node, error) {
	return metadata.Node{}, &metadata.NotFoundError{Node: id}
}

func (p plans) RemoveNode(_ context.Context, id uint32, _ bool) (metadata.Node, error) {
	return metadata.Node{}, &metadata.NotFoundError{Node: id}
}

const fuzzDeployment = ids.Deployment("dp_10000000000000000000001")

// newPlans has the services of large.
func newPlans(t testing.TB) plans {
	d, err := large()
	require.NoError(t, err)
	d.ID, d.URI = fuzzDeployment, "http://known:9080/"
	s := &metadata.Schemas{Deployments: map[ids.Deployment]*metadata.Deployment{d.ID: d}, Services: map[string]*metadata.Service{}}
	for _, service := range d.Services {
		service.Deployment = d.ID
		s.Services[service.Name] = service
	}
	return plans{s}
}

// FuzzBody: any body of any request gets a response, never an internal error.
func FuzzBody(f *testing.F) {
	requests := []struct{ method, path string }{
		{"POST", "/tokens"}, {"POST", "/deployments"}, {"POST", "/v2/deployments"}, {"PATCH", "/deployments/" + string(fuzzDeployment)},
		{"PATCH", "/services/Counter"}, {"POST", "/services/Counter/state?wait=true"}, {"POST", "/services/Signup/state"},
		{"POST", "/internal/invocations_batch_operations/resume"}, {"POST", "/internal/invocations_batch_operations/restart-as-new"},
		{"POST", "/internal/invocations_batch_operations/cancel"},
		{"POST", "/subscriptions"}, {"PATCH", "/subscriptions/sub_10000000000000000000001"}, {"POST", "/subscriptions/sub_10000000000000000000001/seek"},
		{"POST", "/kafka-clusters"}, {"PATCH", "/kafka-clusters/main"},
		{"PUT", "/limits/rules"}, {"PUT", "/limits/rules/tenant%2F*"}, {"POST", "/limits/rules/bulk-delete"},
	}
	for _, body := range []string{
		`{"uri":"http://new:9080","additional_headers":{"a":"b","A":"c"},"use_http_11":true,"force":false,"dry_run":true}`,
		`{"uri":"http://known:9080/","metadata":{"k":"v"}}`, `{"arn":"arn:aws:lambda:eu-central-1:1:function:f:1","assume_role_arn":"x"}`,
		`{"uri":"http://known:9080","breaking":true,"auth":null}`, `{"overwrite":true,"additional_headers":{}}`,
		`{"public":false,"inactivity_timeout":"1m","idempotency_retention":"PT1H","retry_policy":{"max_attempts":null,"initial_interval":"1s","on_max_attempts":"Kill"}}`,
		`{"retry_policy":{"max_attempts":"unlimited","exponentiation_factor":2.5,"max_interval":"0.5 ms"}}`,
		`{"object_key":"k","new_state":{"a":"text","b":[1,2,255],"c":[256]},"version":"1"}`, `{"object_key":"k","new_state":{}}`,
		`{"invocation_ids":["` + someID.String() + `"],"deployment":"Latest"}`, `{"invocation_ids":["inv_1"],"deployment":{"Id":"dp_1"}}`,
		`{"invocation_ids":[],"deployment":{"Id":"` + string(fuzzDeployment) + `"}}`, `[{"pattern":"a/*","limits":{"concurrency":5,"rate":"3/m","queue_limit":0},"description":"d","disabled":true,"precondition":{"type":"does_not_exist"}}]`,
		`{"limits":{"rate":"1/s"},"precondition":{"type":"matches","version":3}}`, `[{"pattern":"a","expected_version":1},{"pattern":"*"}]`, `{"uri":1}`, `{"source":"kafka://main/a,b","sink":"service://Counter/add","start":{"offsets":{"a":{"0":1}},"otherwise":"earliest"},"headers":["x"],"scope":"{topic}","max_in_flight":3}`,
		`{"start":{"timestamp":"2026-01-01T00:00:00Z"}}`, `{"name":"main","properties":{"bootstrap.servers":"a:1","sasl.password":"***"}}`, `[]`, `null`, ``, `{"new_state":{"a":[1.5]}}`,
	} {
		for i := range requests {
			f.Add(uint8(i), body)
		}
	}
	w := &testServer{offers: map[string]func() (*metadata.Deployment, error){}}
	w.Server = New(Config{Logger: slog.New(slog.DiscardHandler)}, newPlans(f), discoverAll{}, w, nil)
	w.change.ID = someID
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		to := requests[int(which)%len(requests)]
		w.did = w.did[:0]
		r := httptest.NewRequest(to.method, to.path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		checkAnswer(t, w, r)
	})
}

// FuzzChoice: any query that chooses a deployment or an entry gets a response.
func FuzzChoice(f *testing.F) {
	for _, query := range []string{
		"deployment=Keep", "deployment=latest", "Id=" + string(fuzzDeployment), "deployment=" + string(fuzzDeployment), "from=4294967295", "from=-1&deployment=",
		"Id=&Id=x", "mode=Kill", "from=1;2", "%zz", "deployment=dp_%00",
	} {
		for i := range 3 {
			f.Add(uint8(i), query)
		}
	}
	w := &testServer{}
	w.Server = New(Config{Logger: slog.New(slog.DiscardHandler)}, newPlans(f), discoverAll{}, w, nil)
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		path := "/invocations/" + someID.String() + []string{"/resume", "/restart-as-new", ""}[which%3]
		method := http.MethodPatch
		if which%3 == 2 {
			method = http.MethodDelete
		}
		w.did = w.did[:0]
		checkAnswer(t, w, &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Body: http.NoBody})
	})
}

func checkAnswer(t *testing.T, w *testServer, r *http.Request) {
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	if recorder.Code < 200 || recorder.Code >= 500 {
		t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	if body := recorder.Body.Bytes(); len(body) > 0 && !json.Valid(body) {
		t.Fatalf("status %d, no JSON: %s", recorder.Code, body)
	}
}

// discoverAll finds the same at every address.
type discoverAll struct{}

func (discoverAll) Convert(context.Context, discovery.Conversion) (discovery.Converted, error) {
	return discovery.Converted{Status: 404}, nil
}

func (discoverAll) Discover(_ context.Context, e discovery.Request) (*metadata.Deployment, error) {
	d, err := large()
	d.URI, d.ARN, d.AssumeRoleARN, d.AdditionalHeaders = e.URI, e.ARN, e.AssumeRoleARN, e.AdditionalHeaders
	return d, err
}
