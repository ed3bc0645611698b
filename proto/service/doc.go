// Package service holds the messages of the service protocol, generated from
// service.proto.
package service
