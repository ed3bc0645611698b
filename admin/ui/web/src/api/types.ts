// The responses of the admin API, as far as the UI reads them.

import type { Await } from '../lib/explain.ts'

export interface Version {
  version: string
  commit?: string
  go_version: string
  supported_feature_level: number
  ingress_endpoint: string
  features: Record<string, boolean>
}

export interface Info {
  code?: string
  message: string
}

export interface RetryPolicy {
  initial_interval?: string
  exponentiation_factor?: number
  max_attempts?: number | null
  max_interval?: string
  on_max_attempts?: string
}

export interface Options {
  public?: boolean
  idempotency_retention?: string
  workflow_completion_retention?: string
  journal_retention?: string
  inactivity_timeout?: string
  abort_timeout?: string
  enable_lazy_state?: boolean
  retry_policy?: RetryPolicy
}

export interface Handler extends Options {
  name: string
  ty?: string
  documentation?: string
  metadata?: Record<string, string>
  input_description: string
  output_description: string
  input_json_schema?: unknown
  output_json_schema?: unknown
  info?: Info[]
}

export interface Service extends Options {
  name: string
  ty: 'Service' | 'VirtualObject' | 'Workflow'
  /** What callers must present. Absent if the setting of the server applies. */
  ingress_auth?: 'none' | 'token' | 'jwt' | 'mtls'
  handlers: Handler[]
  deployment_id: string
  revision: number
  documentation?: string
  metadata?: Record<string, string>
  /** What operators have changed of this revision, with the values it would have otherwise. */
  overridden?: { retry_policy?: RetryPolicy } & Partial<Record<'idempotency_retention' | 'workflow_completion_retention' | 'journal_retention' | 'inactivity_timeout' | 'abort_timeout', string> & Record<'public' | 'enable_lazy_state', boolean>>
  /** Options that the configuration of the server determines. */
  server_defaults?: string[]
  info?: Info[]
}

export interface Deployment {
  id: string
  uri?: string
  arn?: string
  protocol_type?: string
  http_version?: string
  compression?: string
  additional_headers?: Record<string, string>
  metadata?: Record<string, string>
  created_at: string
  min_protocol_version: number
  max_protocol_version: number
  sdk_version?: string
  services: { name: string; revision: number }[]
  info?: Info[]
}

export interface DeploymentDetail extends Omit<Deployment, 'services'> {
  services: Service[]
}

export interface Registered {
  id: string
  services: Service[]
  min_protocol_version: number
  max_protocol_version: number
  sdk_version?: string
  info?: Info[]
}

export interface Invocation {
  id: string
  target: string
  target_service_name: string
  target_service_key?: string
  target_handler_name: string
  target_service_ty: string
  scope?: string
  limit_key?: string
  vqueue_id?: string
  status: string
  created_at?: string
  modified_at?: string
  scheduled_start_at?: string
  running_at?: string
  completed_at?: string
  idempotency_key?: string
  invoked_by: string
  invoked_by_id?: string
  invoked_by_target?: string
  purge_at?: string
  pinned_deployment_id?: string
  pinned_service_protocol_version?: number
  journal_size: number
  retry_count?: number
  next_retry_at?: string
  no_response_since?: string
  abort_at?: string
  pause_requested?: boolean
  cancel_requested_at?: string
  last_pause?: { cause: string; by?: string; reason?: string; attempts?: number; at: string; resumed_at?: string }
  last_failure?: string
  last_failure_error_code?: string
  last_attempt_deployment_id?: string
  last_attempt_server?: string
  awaiting_on?: Await
  completion_result?: string
  completion_failure?: string
}

/** A queue of flow control. */
export interface Queue {
  id: string
  service: string
  scope?: string
  limit_key?: string
  object?: string
  queue_paused: boolean
  paused_by?: string
  pause_reason?: string
  waiting: number
  running: number
  suspended: number
  paused: number
  finished: number
  last_start_at?: string
  head_status?: string
  head_id?: string
  blocked_on?: string
  /** Moving averages, ISO 8601: from arrival to the first start, and of runs. */
  average_wait?: string
  average_run?: string
}

export interface InvocationPage {
  invocations: Invocation[]
  next_cursor?: string
}

export interface Counts {
  total: number
  by_status: Record<string, number>
  by_result?: Record<string, number>
  by_service?: { service: string; handler: string; by_status: Record<string, number>; by_result?: Record<string, number> }[]
  complete?: boolean
  as_of?: string
}

/** An awakeable that an invocation waits for. */
export interface Awakeable {
  id: string
  invocation_id: string
  invocation_status: string
  target: string
  target_service_name: string
  target_service_key?: string
  target_handler_name: string
  target_service_ty: string
  scope?: string
  waiting_since?: string
}

/** What an invocation waits for, and what that waits for. */
export interface Wait {
  kind: string
  text: string
  id?: string
  until?: string
  target?: string
  status?: string
  summary?: string
  waiting_for?: Wait[]
  cycle?: boolean
}

export interface Explain {
  status: string
  summary: string
  details?: { title: string; text: string }[]
  waiting_for?: Wait[]
  /** The handler continues with the first of several results that it waits for. */
  waits_for_first?: boolean
  next_steps?: { text: string; command?: string }[]
}

export interface JournalEvent {
  after_journal_entry_index?: number
  appended_at?: string
  event_type: string
  /** Its number in the history; without one it is not stored. */
  sequence?: number
  content?: Record<string, unknown>
  /** The content as text, in bundles of older servers. */
  event_json?: string
}

export interface ClusterNode {
  /** Such as N1. */
  id: string
  name: string
  state: 'alive' | 'dead' | 'left' | 'unknown'
  state_since?: string
  answers: boolean
  self: boolean
  draining: boolean
  stopping: boolean
  disk?: string
  metadata_role: string
  leaders: number
  replicas: number
  address: string
  admin_address: string
  ingress_address: string
  version?: string
  feature_level?: number
  registered_at: string
  started_at?: string
  usage?: NodeUsage
}

/** What the process of a node uses of its machine. */
export interface NodeUsage {
  cpu_cores: number
  cores: number
  memory_bytes: number
  memory_limit_bytes?: number
  disk_free_bytes?: number
  disk_total_bytes?: number
}

export interface Replica {
  node: string
  role: string
  serving?: boolean
  answers: boolean
  applied: number
  committed: number
  last: number
  snapshot: number
  lag: number
  lag_known: boolean
  caught_up: boolean
  quarantine?: string
}

export interface Partition {
  id: number
  leader?: string
  term: number
  placed: string[]
  placement_version: number
  replicas: Replica[]
}

export interface ClusterHealth {
  status: 'healthy' | 'degraded' | 'unavailable'
  message?: string
  cluster_name: string
  problems?: string[]
  nodes?: ClusterNode[]
  partitions?: Partition[]
  losses_survived?: { now: number; whole: number }
  feature_level?: { level: number; supported: number; highest: number; held: boolean; waiting: string[] }
  metadata_cluster_health?: { leader?: string; quorum: boolean; voters: string[]; learners: string[] } | null
}

export interface ClusterConfig {
  id: string
  name: string
  num_partitions: number
  replication: number
  losses_survived: number
  feature_level: number
  flow_control: boolean
  provisioned_at: string
}

export interface Rule {
  pattern: string
  description?: string
  disabled?: boolean
  limits: { concurrency?: number | null; queue_limit?: number | null; rate?: string | null }
  version: number
  last_modified_millis_since_epoch?: number
}

export interface BatchAnswer {
  succeeded: (string | Record<string, string>)[]
  requested?: string[]
  failed: { invocation_id: string; error: string }[]
}

export interface FailureGroup {
  id: string
  service: string
  handler: string
  error_code?: string
  code?: number | string
  message: string
  sample_invocation_id?: string
  count: number
  by_status?: Record<string, number>
  keys?: number
  first_seen?: string
  last_seen?: string
  deployments?: string[]
  /** An operator has said that it needs no attention. */
  muted?: boolean
  note?: string
  marked_by?: string
  marked_at?: string
}

/** A topic partition whose next record cannot be delivered. */
export interface BlockedPartition {
  subscription_id: string
  service: string
  handler: string
  topic: string
  partition: number
  position: number
  reason: string
  message: string
  since: string
  lag_records?: number
}

export interface Stats {
  from: string
  to: string
  step_ms: number
  series: Record<string, (number | null)[]>
  services?: Record<string, Record<string, (number | null)[]>>
  complete?: boolean
  nodes?: unknown[]
}

export interface Job {
  id: string
  operation: string
  state: string
  created_at?: string
  modified_at?: string
  total?: number
  matched: number
  done: number
  failed: number
  skipped?: number
  filter?: Record<string, string[]>
  deployment?: string
  reason?: string
  by?: string
  error?: string
  failures?: { invocation_id: string; error: string }[]
}

export interface TableInfo {
  name: string
  description: string
  columns: { name: string; type: string; description: string }[]
}

/** Limits of a query. */
export interface QueryLimits {
  timeout: string
  max_rows: number
  max_bytes: number
  concurrency: number
}

export interface StateAnswer {
  version: string
  state: { key: string; value: string; value_utf8?: string }[]
}

/** A key of a virtual object or workflow. */
export interface ObjectSummary {
  service: string
  key: string
  scope?: string
  state_entries: number
  state_bytes: number
  held_by?: string
  waiting?: number
}

export interface ObjectDetail extends ObjectSummary {
  held_since?: string
  queue: string[]
  promises?: { name: string; completed: boolean; value_utf8?: string; value_base64?: string; failure?: string; value_omitted?: boolean }[]
}

/** An event subscription. */
/** A record that a subscription could not deliver and that the server keeps. */
export interface DeadLetter {
  topic: string
  partition: number
  offset: number
  reason: string
  message: string
  at: string
  key_bytes: number
  value_bytes: number
}

/** A subscription with dead letters. */
export interface DeadLetterCount {
  subscription_id: string
  source: string
  service: string
  handler: string
  records: number
}

export interface Subscription {
  id: string
  source: string
  sink: string
  options: Record<string, string>
  ordering: string
  on_error: string
  dead_letter_topic?: string
  tombstones: string
  on_recreate: string
  headers: string[]
  scope?: string
  limit_key?: string
  max_in_flight: number
  start: { from: string; timestamp?: string; otherwise?: string; resolved: boolean }
  incarnation: number
  created_at: string
  modified_at: string
  state: string
  reason?: string
  message?: string
  since?: string
  paused?: { by: string; reason?: string; at: string }
  topic_partitions: number
  blocked: number
  dead_letters: number
  lag_records?: number
  lag_seconds?: number
  partitions?: TopicPartition[]
  silent_nodes?: string[]
  info?: Info[]
}

export interface TopicPartition {
  topic: string
  partition: number
  state: string
  reason?: string
  message?: string
  node?: string
  owner_partition: number
  position: number
  end_offset?: number
  lag_records?: number
  lag_seconds?: number
  in_flight: number
  skipped: number
  dead_lettered: number
  last_error?: string
  last_error_at?: string
  blocked_record?: { offset: number; timestamp?: string; reason: string; message?: string; key_bytes: number; value_bytes: number }
}

interface RecordBytes {
  text?: string
  base64?: string
}

/** A record of a topic. */
export interface StreamRecord {
  topic: string
  partition: number
  offset: number
  timestamp?: string
  key: RecordBytes | null
  value: RecordBytes | null
  headers: { name: string; value: RecordBytes | null }[]
  key_bytes: number
  value_bytes: number
}

export interface KafkaCluster {
  name: string
  properties: Record<string, string>
  created_at: string
  static: boolean
  subscriptions?: Subscription[]
  info?: Info[]
}

/** The principal that the server authenticated. */
export interface Identity {
  name?: string
  token_id?: string
  roles: string[]
  permissions: string[]
  services?: string[]
  scopes?: string[]
  token_required: boolean
  security_mode?: string
  /** The user has logged in with an identity provider. */
  session?: boolean
  expires_at?: string
}

/** How users can log in other than with a token. */
export interface LoginOptions {
  oidc?: { issuer: string; start_url?: string }
}

export interface Token {
  id: string
  name: string
  roles: string[]
  services?: string[]
  scopes?: string[]
  created_at: string
  expires_at?: string
  expired?: boolean
  last_used?: string
  session?: boolean
}

export interface CreatedToken extends Token {
  token: string
}

export interface AuditRecord {
  sequence: number
  at: string
  principal?: string
  address?: string
  action: string
  object: string
  /** HTTP status of the response, if it is known. */
  status?: number
  outcome?: string
}

export interface AuditVerification {
  intact: boolean
  problem?: string
  records: number
}
