package discovery

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/invoker/endpoint"
	"platform/metadata"
)

// manifests are seeds: what endpoints of all kinds announce, and mistakes.
var manifests = []string{
	`{"protocolMode":"BIDI_STREAM","minProtocolVersion":5,"maxProtocolVersion":6,"services":[]}`,
	`{"protocolMode":"REQUEST_RESPONSE","minProtocolVersion":5,"maxProtocolVersion":7,"lambdaCompression":"zstd","services":[
	  {"name":"Counter","ty":"VIRTUAL_OBJECT","documentation":"d","metadata":{"a":"b"},"inactivityTimeout":1000,"abortTimeout":0,
	   "journalRetention":18446744073709551615,"idempotencyRetention":1,"enableLazyState":true,"ingressPrivate":true,
	   "retryPolicyInitialInterval":100,"retryPolicyMaxInterval":50,"retryPolicyMaxAttempts":9007199254740993,
	   "retryPolicyExponentiationFactor":1.5,"retryPolicyOnMaxAttempts":"KILL","handlers":[
	     {"name":"add","ty":"EXCLUSIVE","input":{"required":true,"contentType":"application/json","jsonSchema":{"type":"integer"}},
	      "output":{"contentType":"application/json","setContentTypeIfEmpty":true,"jsonSchema":true}},
	     {"name":"get","ty":"SHARED","input":{"contentType":"*/*"},"output":{}}]}]}`,
	`{"protocolMode":"BIDI_STREAM","minProtocolVersion":1,"maxProtocolVersion":9,"services":[{"name":"Flow","ty":"WORKFLOW","handlers":[
	  {"name":"run","ty":"WORKFLOW","workflowCompletionRetention":86400000,"retryPolicyOnMaxAttempts":"PAUSE"},{"name":"peek"}]}]}`,
	`{"protocolMode":"BIDI_STREAM","minProtocolVersion":5,"maxProtocolVersion":5,"services":[{"name":"G","ty":"SERVICE","handlers":[
	  {"name":"g","input":{"jsonSchema":{"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[{"items":{"not":{}}},{"properties":{"p":{"type":["null","string"]}}}]}}}}}]}]}`,
	`{"services":[{"retryPolicyExponentiationFactor":1e999}]}`, `{"minProtocolVersion":1.5}`, `[]`, `null`, `{"services":null}`, "\n{\n]",
}

// FuzzManifest: a manifest is rejected or yields a deployment that is unchanged when it is
// announced again in normal form.
func FuzzManifest(f *testing.F) {
	for _, text := range manifests {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text, false)
	}
	d := &Discoverer{cfg: DefaultConfig()}
	defaults := metadata.StandardDefaults()
	f.Fuzz(func(t *testing.T, body []byte, function bool) {
		head := endpoint.Head{Status: 200, Header: http.Header{"Content-Type": {mediaTypes[len(mediaTypes)-1]}}}
		dep, err := d.deployment(&manifestResponse{head: head, body: body, function: function})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		for _, s := range dep.Services {
			for _, h := range s.Handlers {
				o := metadata.Effective(h, s, &defaults)
				if o.InactivityTimeout < 0 || o.AbortTimeout < 0 || o.Retry.InitialInterval < 0 || o.Retry.MaxInterval < 0 || o.Retry.MaxAttempts < 0 {
					t.Fatalf("%s/%s: options %+v", s.Name, h.Name, o)
				}
			}
		}
		m, err := parseManifest(body)
		require.NoError(t, err)
		again, err := json.Marshal(m)
		require.NoError(t, err)
		same, err := d.deployment(&manifestResponse{head: head, body: again, function: function})
		require.NoError(t, err, "%s", again)
		require.Equal(t, normal(dep), normal(same))
	})
}

// normal leaves out what JSON may write differently: spaces in schemas, and empty
// maps, which are like none.
func normal(d *metadata.Deployment) *metadata.Deployment {
	for _, s := range d.Services {
		s.Metadata = orNone(s.Metadata)
		for _, h := range s.Handlers {
			h.Metadata = orNone(h.Metadata)
			for _, schema := range []*json.RawMessage{&h.Input.JSONSchema, &h.Output.JSONSchema} {
				var v any
				if *schema != nil && json.Unmarshal(*schema, &v) == nil {
					*schema, _ = json.Marshal(v)
				}
			}
		}
	}
	return d
}

func orNone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// FuzzURI: normalizing an address again does not change it, and the result can be connected to.
func FuzzURI(f *testing.F) {
	for _, uri := range []string{
		"http://localhost:9080", "HTTPS://Example.COM:443/a//", "http://[::1]:80/%2F/", "http://u:p@h/", "http:///x", "ftp://h", "http://h:80:80/?a=b#c",
		"http://h/%zz", "//h", "http://h/\x7f", "http://h?", "http://%41/",
	} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		uri, err := NormalizeURI(raw)
		if err != nil {
			return
		}
		again, err := NormalizeURI(uri)
		if err != nil || again != uri {
			t.Fatalf("%q is %q and then %q, %v", raw, uri, again, err)
		}
		for _, http11 := range []bool{false, true} {
			if addr, err := endpoint.ParseAddress(uri, http11); err == nil && addr.Path("/discover") == "" {
				t.Fatalf("%q has no path", uri)
			}
		}
	})
}

// FuzzARN: a valid ARN of a function remains valid and unchanged when it is normalized again.
func FuzzARN(f *testing.F) {
	for _, arn := range []string{
		"arn:aws:lambda:eu-central-1:123456789012:function:my-function:1", " arn:aws-cn:lambda:cn-north-1:1:function:f:alias ",
		"arn:aws:lambda:eu-central-1:123456789012:function:f", "arn:aws:s3:::b", "arn", "arn:a:lambda:b:c:function:d:$LATEST",
	} {
		f.Add(arn)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		arn, err := NormalizeARN(raw)
		if err != nil {
			return
		}
		if again, err := NormalizeARN(arn); err != nil || again != arn {
			t.Fatalf("%q is %q and then %q, %v", raw, arn, again, err)
		}
	})
}
