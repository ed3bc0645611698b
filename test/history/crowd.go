package history

import "time"

// Crowd is the result of Crowd/report: who has been inside Crowd/stay since the
// process of the service began. An invocation of which two attempts overlap counts
// once.
type Crowd struct {
	Most  int           `json:"most"`  // inside at the same time
	Left  int           `json:"left"`  // stays that came to their end
	Spent time.Duration `json:"spent"` // by all of them together, those inside now included
}
