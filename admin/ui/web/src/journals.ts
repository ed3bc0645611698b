// Journals of invocations, read in pages and continued: entries never change, so only new ones are read.

import { useEffect, useReducer, useRef } from 'preact/hooks'
import { get, getBytes, withQuery } from './api/client.ts'
import { StepBuilder, absentPayloads, alwaysInline, type JournalRow, type Step } from './lib/journal.ts'
import { fromBase64, toBase64 } from './lib/payload.ts'
import { subscribe } from './live.ts'
import { segment } from './router.ts'

/** Entries up to this size come with their payloads, until a journal has as many bytes of them as its budget. */
const inlineLimit = 4096
const inlineBudget = 4 << 20
const pageSize = 1000
/** The first page is small, so that it is shown soon. */
const firstPageSize = 100

async function readPage(id: string, from: number, limit: number, inline: number, signal?: AbortSignal): Promise<JournalRow[]> {
  return (await get<{ entries: JournalRow[] }>(withQuery(`/invocations/${segment(id)}/journal`, { from, limit, max_payload: inline }), signal)).entries
}

/** Reads a journal from an entry on, up to 1,000 entries. */
export function readEntries(id: string, from: number): Promise<JournalRow[]> {
  return readPage(id, from, pageSize, inlineLimit)
}

/** A journal that is kept without the server. */
export interface Recorded {
  journal: JournalRow[]
  /** Payloads that the entries come without, in base64, by the index of the entry. */
  payloads?: Record<number, string> | undefined
}

/** Reads a whole journal, with the payloads that fit into a number of bytes. `left` of them do not. */
export async function readWhole(id: string, budget: number): Promise<Recorded & { left: number }> {
  const journal: JournalRow[] = []
  for (;;) {
    const more = await readEntries(id, (journal.at(-1)?.index ?? -1) + 1)
    journal.push(...more)
    if (more.length < pageSize) break
  }
  const payloads: Record<number, string> = {}
  let left = 0
  for (const { index, length } of absentPayloads(journal)) {
    if (length > budget) {
      left++
      continue
    }
    budget -= length
    payloads[index] = toBase64(await readPayload(id, index))
  }
  return { journal, payloads, left }
}

/** Reads the first entry of a journal; undefined if there is none. */
export async function readFirstEntry(id: string): Promise<JournalRow | undefined> {
  return (await readPage(id, 0, 1, inlineLimit))[0]
}

/** Reads the payload of an entry, of any size. */
export function readPayload(id: string, index: number): Promise<Uint8Array> {
  return getBytes(`/invocations/${segment(id)}/journal/${index}/payload`)
}

export interface Journal {
  steps: readonly Step[]
  /** Changes with the steps, which are updated in place. */
  version: number
  /** All entries that exist have been read once. */
  complete: boolean
  error: Error | undefined
}

export interface Journals {
  of: (id: string) => Journal
  /** Reads the payload of an entry, and adds it to its step. */
  loadPayload: (id: string, index: number) => Promise<void>
}

const nothing: Journal = { steps: [], version: 0, complete: false, error: undefined }

/** A journal that is read up to its end, again and again. */
class Reader implements Journal {
  version = 0
  complete = false
  error: Error | undefined
  took = 0
  readonly #id: string
  readonly #builder = new StepBuilder()
  #inlined = 0
  #reading: AbortSignal | undefined
  #again = false

  constructor(id: string) {
    this.#id = id
  }

  get steps(): readonly Step[] {
    return this.#builder.steps
  }

  add(rows: readonly JournalRow[]): void {
    if (rows.length === 0) return
    this.#builder.add(rows)
    for (const r of rows) if ((r.raw_length ?? 0) <= this.#inlineLimit()) this.#inlined += r.raw_length ?? 0
    this.version++
  }

  async read(signal: AbortSignal, changed: () => void): Promise<void> {
    if (this.#reading && !this.#reading.aborted) {
      this.#again = true
      return
    }
    this.#reading = signal
    const begun = performance.now()
    try {
      do {
        this.#again = false
        await this.#readToEnd(signal, changed)
      } while (this.#again && !signal.aborted)
    } catch (err) {
      if (signal.aborted) return
      this.error = err as Error
      changed()
    } finally {
      if (this.#reading === signal) {
        this.took = performance.now() - begun
        this.#reading = undefined
      }
    }
  }

  async #readToEnd(signal: AbortSignal, changed: () => void): Promise<void> {
    for (;;) {
      const from = this.#builder.next
      const limit = from === 0 ? firstPageSize : pageSize
      const rows = await readPage(this.#id, from, limit, this.#inlineLimit(), signal)
      if (signal.aborted) return
      this.add(rows)
      const end = rows.length < limit
      if (rows.length > 0 || (end && !this.complete) || this.error) {
        this.complete ||= end
        this.error = undefined
        changed()
      }
      if (end) return
    }
  }

  #inlineLimit(): number {
    return this.#inlined < inlineBudget ? inlineLimit : alwaysInline
  }

  addPayload(index: number, bytes: Uint8Array): void {
    this.#builder.addPayload(index, bytes)
    this.version++
  }

  async loadPayload(index: number): Promise<void> {
    this.addPayload(index, await readPayload(this.#id, index))
  }
}

/** The journals of some invocations, kept current while `live`. */
export function useJournals(ids: readonly string[], live: boolean, fixed?: ReadonlyMap<string, Recorded>): Journals {
  const [, update] = useReducer((n: number) => n + 1, 0)
  const readers = useRef(new Map<string, Reader>())
  const key = ids.join(',')
  useEffect(() => {
    const readerOf = (id: string): Reader => {
      const reader = readers.current.get(id) ?? new Reader(id)
      readers.current.set(id, reader)
      return reader
    }
    if (fixed) {
      readers.current.clear()
      for (const [id, { journal, payloads }] of fixed) {
        const reader = readerOf(id)
        reader.add(journal)
        for (const [index, text] of Object.entries(payloads ?? {})) reader.addPayload(Number(index), fromBase64(text))
        reader.complete = true
      }
      update(undefined)
      return
    }
    const abort = new AbortController()
    const stops = (key === '' ? [] : key.split(',')).map((id) => {
      const run = (): void => void readerOf(id).read(abort.signal, () => update(undefined))
      run()
      return live ? subscribe({ topics: [`invocation:${id}`], every: 1500, atLeast: 400, run, took: () => readerOf(id).took }) : undefined
    })
    return () => {
      abort.abort()
      for (const stop of stops) stop?.()
    }
  }, [key, live, fixed])
  return {
    of: (id) => readers.current.get(id) ?? nothing,
    loadPayload: async (id, index) => {
      await readers.current.get(id)?.loadPayload(index)
      update(undefined)
    },
  }
}
