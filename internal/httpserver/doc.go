// Package httpserver serves HTTP/1.1 and HTTP/2 with prior knowledge on one port, with
// graceful shutdown. It is shared by the ingress and the admin API.
package httpserver
