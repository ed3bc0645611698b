package main

import (
	restate "github.com/restatedev/sdk-go"
)

// killedService ends what fails three times.
func killedService() restate.ServiceDefinition {
	return restate.NewService("GoKilled", restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(quick), restate.WithMaxRetryAttempts(3), restate.KillOnMaxAttempts())).
		Handler("work", restate.NewServiceHandler(attempt))
}

// pausedService pauses what fails three times.
func pausedService() restate.ServiceDefinition {
	return restate.NewService("GoPaused", restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(quick), restate.WithMaxRetryAttempts(3), restate.PauseOnMaxAttempts())).
		Handler("work", restate.NewServiceHandler(attempt))
}
