package main

import "maps"

const subscriptionJSON = `{"id":"sub_1a","source":"kafka://main/orders","sink":"service://Greeter/greet","state":"blocked","headers":["*"],"options":{"group.id":"sub_1a","client.rack":"r"},
"start":{"from":"latest","resolved":true},"partitions":[{"topic":"orders","partition":3,"state":"blocked","node":1,"position":42,"blocked_record":{"offset":42,"reason":"key_missing"}}]}`

const letterJSON = `"topic":"orders","partition":3,"offset":42,"reason":"key_missing","message":"no key","at":"2026-01-31T15:04:05Z","key_bytes":0,"value_bytes":3`

const clusterJSON = `{"name":"main","properties":{"bootstrap.servers":"a:1","client.rack":"r"},"created_at":"2026-01-31T15:04:05Z","static":false}`

// subscriptionSettings are the flags of create and edit.
func subscriptionSettings(others map[string]string) map[string]string {
	flags := map[string]string{
		"ordering": "--ordering none", "on-error": "--on-error skip", "dead-letter-topic": "--dead-letter-topic d", "tombstones": "--tombstones skip", "on-recreate": "--on-recreate earliest",
		"headers": "--headers a,b", "scope": "--scope {topic}", "limit-key": "--limit-key {key}", "max-in-flight": "--max-in-flight 5",
	}
	maps.Copy(flags, others)
	return flags
}

func init() { //nolint:gochecknoinits // adds to a table
	one := map[string]string{"GET.subscriptions.sub_1a": "200\n" + subscriptionJSON}
	with := func(name, text string) map[string]string {
		answers := maps.Clone(one)
		answers[name] = text
		return answers
	}
	maps.Copy(flagCases, map[string]flagCase{
		"subscriptions create": {
			args: []string{"kafka://main/orders", "service://Greeter/greet", "client.id=x3"},
			flags: subscriptionSettings(map[string]string{
				"topic-pattern": "--topic-pattern o.*", "start": "--start earliest", "file": "--file missing.properties",
			}),
			answers: map[string]string{"POST.subscriptions": "201\n" + subscriptionJSON},
		},
		"subscriptions edit": {
			args: []string{"sub_1a"}, flags: subscriptionSettings(map[string]string{"sink": "--sink service://Greeter/wave", "unset": "--unset client.rack"}),
			answers: with("PATCH.subscriptions.sub_1a", "200\n"+subscriptionJSON),
		},
		"subscriptions list": {
			flags:   map[string]string{"source": "--source kafka://main/orders", "sink": "--sink service://Greeter/greet"},
			answers: map[string]string{"GET.subscriptions": "200\n" + `{"subscriptions":[` + subscriptionJSON + `]}`},
		},
		"subscriptions describe": {args: []string{"sub_1a"}, answers: one},
		"subscriptions pause": {
			args: []string{"sub_1a"}, flags: map[string]string{"reason": "--reason maintenance"}, answers: with("POST.subscriptions.sub_1a.pause", "200\n"+subscriptionJSON),
		},
		"subscriptions resume": {args: []string{"sub_1a"}, answers: with("POST.subscriptions.sub_1a.resume", "200\n"+subscriptionJSON)},
		"subscriptions seek":   {args: []string{"sub_1a", "0=5", "orders/1=6", "--yes"}, base: map[string]string{"json": "--restart"}, answers: with("POST.subscriptions.sub_1a.seek", "200\n"+subscriptionJSON)},
		"subscriptions skip":   {args: []string{"sub_1a", "orders/3", "--yes"}, answers: with("POST.subscriptions.sub_1a.records.orders.3.42.skip", "202\n")},
		"subscriptions retry":  {args: []string{"sub_1a"}, answers: with("POST.subscriptions.sub_1a.records.orders.3.42.retry", "202\n")},
		"subscriptions record": {
			args:    []string{"sub_1a"},
			answers: with("GET.subscriptions.sub_1a.records.orders.3.42", "200\n"+`{"topic":"orders","partition":3,"offset":42,"timestamp":"2026-01-31T15:04:05Z","key":null,"value":{"text":"7"},"headers":[]}`),
		},
		"subscriptions delete": {args: []string{"sub_1a", "--yes"}, answers: with("DELETE.subscriptions.sub_1a", "202\n")},
		"subscriptions dead-letters list": {
			args: []string{"sub_1a"}, flags: map[string]string{"after": "--after orders/3/41"},
			answers: with("GET.subscriptions.sub_1a.dead-letters", "200\n"+`{"dead_letters":[{`+letterJSON+`}],"next":"orders/3/42"}`),
		},
		"subscriptions dead-letters show": {
			args:    []string{"sub_1a", "orders/3/42"},
			answers: with("GET.subscriptions.sub_1a.dead-letters.orders.3.42", "200\n"+`{`+letterJSON+`,"key":null,"value":{"base64":"/wAB"},"headers":[{"name":"h","value":{"text":"v"}}]}`),
		},
		"subscriptions dead-letters retry": {
			args: []string{"sub_1a"}, flags: map[string]string{"all": "--all"},
			answers: with("POST.subscriptions.sub_1a.dead-letters.retry", "200\n"+`{"done":2,"failed":0}`),
		},
		"subscriptions dead-letters drop": {
			args: []string{"sub_1a", "--yes"}, flags: map[string]string{"all": "--all"},
			answers: with("DELETE.subscriptions.sub_1a.dead-letters", "200\n"+`{"done":2,"failed":0}`),
		},

		"kafka-clusters create": {
			args: []string{"main", "bootstrap.servers=a:3"}, flags: map[string]string{"file": "--file missing.properties"}, answers: map[string]string{"POST.kafka-clusters": "201\n" + clusterJSON},
		},
		"kafka-clusters list":     {answers: map[string]string{"GET.kafka-clusters": "200\n" + `{"clusters":[` + clusterJSON + `]}`}},
		"kafka-clusters describe": {args: []string{"main"}, answers: map[string]string{"GET.kafka-clusters.main": "200\n" + clusterJSON}},
		"kafka-clusters edit": {
			args: []string{"main", "client.id=x3"}, flags: map[string]string{"set": "--set client.rack=y", "unset": "--unset client.rack", "file": "--file missing.properties"},
			answers: map[string]string{"GET.kafka-clusters.main": "200\n" + clusterJSON, "PATCH.kafka-clusters.main": "200\n" + clusterJSON},
		},
		"kafka-clusters delete": {args: []string{"main", "--yes"}, answers: map[string]string{"GET.kafka-clusters.main": "200\n" + clusterJSON, "DELETE.kafka-clusters.main": "202\n"}},
	})
}
