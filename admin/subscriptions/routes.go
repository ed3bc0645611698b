package subscriptions

import (
	"platform/admin/rest"
	"platform/internal/access"
)

// Routes returns the routes of subscriptions and Kafka clusters.
func (s *Server) Routes() []rest.Route {
	return []rest.Route{
		rest.Post("/subscriptions", access.Deploy, s.createSubscription),
		rest.Get("/subscriptions", access.View, s.listSubscriptions),
		rest.Get("/subscriptions/:subscription", access.View, s.getSubscription),
		rest.Patch("/subscriptions/:subscription", access.Deploy, s.patchSubscription),
		rest.Delete("/subscriptions/:subscription", access.Deploy, s.deleteSubscription),
		rest.Post("/subscriptions/:subscription/pause", access.Operate, s.pauseSubscription),
		rest.Post("/subscriptions/:subscription/resume", access.Operate, s.resumeSubscription),
		rest.Post("/subscriptions/:subscription/seek", access.Operate, s.seekSubscription),
		rest.Get(recordPath, access.Payloads, s.getRecord),
		rest.Post(recordPath+"/retry", access.Operate, s.onRecord(s.cfg.Streams.RetryRecord, recordError)),
		rest.Post(recordPath+"/skip", access.Operate, s.onRecord(s.cfg.Streams.SkipRecord, recordError)),
		rest.Get(lettersPath, access.View, s.listDeadLetters),
		rest.Post(lettersPath+"/retry", access.Operate, s.onEachDeadLetter(s.cfg.Streams.RetryDeadLetter)),
		rest.Delete(lettersPath, access.Operate, s.onEachDeadLetter(s.cfg.Streams.DropDeadLetter)),
		rest.Get(lettersPath+letterPath, access.Payloads, s.getDeadLetter),
		rest.Post(lettersPath+letterPath+"/retry", access.Operate, s.onRecord(s.cfg.Streams.RetryDeadLetter, deadLetterError)),
		rest.Delete(lettersPath+letterPath, access.Operate, s.onRecord(s.cfg.Streams.DropDeadLetter, deadLetterError)),
		rest.Post("/kafka-clusters", access.Deploy, s.createKafkaCluster),
		rest.Get("/kafka-clusters", access.View, s.listKafkaClusters),
		rest.Get("/kafka-clusters/:kafka_cluster", access.View, s.getKafkaCluster),
		rest.Patch("/kafka-clusters/:kafka_cluster", access.Deploy, s.patchKafkaCluster),
		rest.Delete("/kafka-clusters/:kafka_cluster", access.Deploy, s.deleteKafkaCluster),
	}
}

const (
	recordPath  = "/subscriptions/:subscription/records/:topic/:topic_partition/:offset"
	lettersPath = "/subscriptions/:subscription/dead-letters"
	letterPath  = "/:topic/:topic_partition/:offset"
)
