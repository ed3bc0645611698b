// Package httpserver serves HTTP/1.1 and HTTP/2 with prior knowledge on one port,
// and stops in order: it is what the ingress and the admin API have in common.
package httpserver
