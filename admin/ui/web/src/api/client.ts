// Requests to the admin API.

import type { ClusterHealth } from './types.ts'
import { noteServerTime } from '../lib/clock.ts'
import { credentials, loginNeeded, token } from '../session.ts'

export class APIError extends Error {
  readonly status: number
  readonly code: string | undefined
  /** The field of the request that is wrong, if the server names one. */
  readonly field: string | undefined
  /** The JSON of the response, if it is an object. */
  readonly body: Record<string, unknown> | undefined
  constructor(status: number, message: string, code?: string | null, field?: string, body?: Record<string, unknown>) {
    super(message)
    this.name = 'APIError'
    this.status = status
    this.code = code ?? undefined
    this.field = field
    this.body = body
  }
  /** The route is not there: an older server, or an optional part that is off. */
  get missing(): boolean {
    return this.status === 404 || this.status === 405 || this.status === 501
  }
  /** There was no response of the server. */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 504
  }
  /** The request may be repeated: it did not reach the server, or the server was overloaded. */
  get transient(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503 || this.status === 502 || this.status === 504
  }
}

export interface RequestOptions {
  method?: string
  body?: unknown
  signal?: AbortSignal | undefined
  timeout?: number
  retries?: number
  /** Return the body as bytes instead of parsing it as JSON. */
  bytes?: boolean
}

const wait = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }, { once: true })
  })

/** Calls the API. Reads are repeated when the server is overloaded or restarts; changes never are. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = 'GET', retries = method === 'GET' ? 2 : 0 } = options
  for (let attempt = 0; ; attempt++) {
    try {
      return await once<T>(path, method, options)
    } catch (err) {
      if (!(err instanceof APIError) || !err.transient || attempt >= retries || options.signal?.aborted) throw err
      await wait(200 * 2 ** attempt + Math.random() * 200, options.signal)
    }
  }
}

/** The latest responses of reads, which the server does not send again while they are the same. */
const versions = new Map<string, { tag: string; data: unknown }>()
const maxVersions = 60
const maxVersionSize = 256 << 10

/** Forgets what was read: another user may not read it. */
export function forgetVersions(): void {
  versions.clear()
}

function keepVersion(path: string, response: Response, text: string, data: unknown): void {
  const tag = response.headers.get('etag')
  versions.delete(path)
  if (!tag || text.length > maxVersionSize) return
  versions.set(path, { tag, data })
  if (versions.size > maxVersions) versions.delete(versions.keys().next().value as string)
}

async function once<T>(path: string, method: string, options: RequestOptions): Promise<T> {
  const known = method === 'GET' ? versions.get(path) : undefined
  const timeout = AbortSignal.timeout(options.timeout ?? 30_000)
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout
  let response: Response
  let text = ''
  let bytes: Uint8Array | undefined
  const sentToken = token.peek()
  const sent = Date.now()
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: { accept: 'application/json', ...credentials(), ...(options.body !== undefined ? { 'content-type': 'application/json' } : {}), ...(known ? { 'if-none-match': known.tag } : {}) },
      ...(options.body !== undefined ? { body: JSON.stringify(options.body) } : {}),
    })
    noteServerTime(response.headers.get('date'), sent, Date.now())
    if (options.bytes && response.ok) bytes = new Uint8Array(await response.arrayBuffer())
    else text = await response.text()
  } catch (err) {
    if (options.signal?.aborted) throw err
    if (timeout.aborted) throw new APIError(0, `The server did not answer within ${(options.timeout ?? 30_000) / 1000} s.`)
    throw new APIError(0, 'The server cannot be reached. It may be restarting, or the network is interrupted.')
  }
  // The response to a request sent before a login does not concern the new token, and its user may not read it.
  if (method === 'GET' && sentToken !== token.peek()) throw new APIError(0, 'The login has changed.')
  if (response.status === 401 && sentToken === token.peek()) loginNeeded.value = true
  if (response.status === 304 && known) return known.data as T
  if (!response.ok) throw refusal(response.status, text)
  if (bytes) return bytes as T
  if (text === '') return undefined as T
  try {
    const data = JSON.parse(text) as T
    if (method === 'GET') keepVersion(path, response, text, data)
    return data
  } catch {
    throw new APIError(response.status, 'The answer of the server is not valid JSON. It may have been cut off.')
  }
}

function refusal(status: number, text: string): APIError {
  try {
    const body = JSON.parse(text) as Record<string, unknown> & { platform_code?: string | null; field?: string }
    if (typeof body.message === 'string') return new APIError(status, body.message, body.platform_code, body.field, body)
  } catch {
    // not from the API
  }
  return new APIError(status, text.trim().slice(0, 300) || `The server answered with status ${status}.`)
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => request<T>(path, { signal })

export const getBytes = (path: string): Promise<Uint8Array> => request<Uint8Array>(path, { bytes: true, timeout: 120_000 })

/** The health of the cluster; a cluster without a majority describes itself in the body of an error. */
export async function clusterHealth(signal?: AbortSignal): Promise<ClusterHealth> {
  try {
    return await request<ClusterHealth>('/cluster-health', { signal, retries: 0 })
  } catch (err) {
    if (err instanceof APIError && err.body?.status === 'unavailable') return err.body as unknown as ClusterHealth
    throw err
  }
}

export function withQuery(path: string, params: URLSearchParams | Record<string, string | number | boolean | undefined>): string {
  const q = params instanceof URLSearchParams ? params : new URLSearchParams()
  if (!(params instanceof URLSearchParams)) {
    for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== '') q.set(name, String(value))
  }
  const text = q.toString()
  return text === '' ? path : `${path}?${text}`
}

export interface QueryResult {
  columns?: { name: string; type: string }[]
  /** Remarks about conditions that no row can meet. */
  notices?: { message: string; line: number; column: number }[]
  rows: Record<string, unknown>[]
  stats?: { scans: number; partitions: number; pages: number; rows_read: number }
}

/** Runs a query of the SQL page. */
export async function sql(query: string, options: { signal?: AbortSignal | undefined; columns?: boolean; timeout?: number } = {}): Promise<QueryResult> {
  const retries = 3
  for (let attempt = 0; ; attempt++) {
    try {
      return await request<QueryResult>('/query', {
        method: 'POST', signal: options.signal, timeout: options.timeout ?? 35_000,
        body: { query, u64_as_text: true, ...(options.columns ? { with_columns: true, with_stats: true } : {}) },
      })
    } catch (err) {
      // Queries change nothing, so they may be repeated.
      if (!(err instanceof APIError) || (err.status !== 429 && err.status !== 503) || attempt >= retries || options.signal?.aborted) throw err
      await wait(300 * 2 ** attempt + Math.random() * 300, options.signal)
    }
  }
}

let described: Promise<ReadonlySet<string>> | undefined

/** The routes of the server, from its description of the API. */
function routes(): Promise<ReadonlySet<string>> {
  described ??= request<{ paths?: Record<string, unknown> }>('/openapi').then((d) => new Set(Object.keys(d.paths ?? {})))
  described.catch(() => {
    described = undefined
  })
  return described
}

/** Whether the server has a route, a path of the OpenAPI document. */
export async function hasRoute(route: string): Promise<boolean> {
  return (await routes()).has(route)
}
