// Journals of invocations, read in pages and continued: entries never change, so only new ones are read.

import { useEffect, useReducer, useRef } from 'preact/hooks'
import { rows as queryRows } from './api/client.ts'
import { sqlText } from './lib/format.ts'
import { buildSteps, type JournalRow, type Step } from './lib/journal.ts'
import { subscribe } from './live.ts'

/** Entries up to this size come with their payloads. */
const inlineLimit = 4096
const pageSize = 1000

const columns = 'index, entry_type, name, invoked_id, invoked_target, sleep_wakeup_at, promise_name, raw_length, appended_at'

export function readEntries(id: string, from: number, signal?: AbortSignal): Promise<JournalRow[]> {
  return queryRows<JournalRow>(
    `SELECT ${columns}, CASE WHEN raw_length <= ${inlineLimit} THEN entry_json ELSE entry_lite_json END AS json FROM sys_journal ` +
    `WHERE id = ${sqlText(id)} AND index >= ${from} ORDER BY index LIMIT ${pageSize}`, signal)
}

export async function readWholeEntry(id: string, index: number): Promise<JournalRow | undefined> {
  const [row] = await queryRows<JournalRow>(`SELECT ${columns}, entry_json AS json FROM sys_journal WHERE id = ${sqlText(id)} AND index = ${index}`)
  return row
}

export interface Journal {
  rows: JournalRow[]
  steps: Step[]
  /** All entries that exist have been read once. */
  complete: boolean
  error: Error | undefined
}

interface Entry extends Journal {
  running: boolean
  again: boolean
}

const nothing: Journal = { rows: [], steps: [], complete: false, error: undefined }

/** The journals of some invocations, kept current while `live`. */
export function useJournals(ids: readonly string[], live: boolean, fixed?: ReadonlyMap<string, JournalRow[]>): { of: (id: string) => Journal; loadEntry: (id: string, index: number) => Promise<void> } {
  const [, update] = useReducer((n: number) => n + 1, 0)
  const journals = useRef(new Map<string, Entry>())
  const key = ids.join(',')
  useEffect(() => {
    if (fixed) {
      for (const [id, list] of fixed) journals.current.set(id, { rows: list, steps: buildSteps(list), complete: true, error: undefined, running: false, again: false })
      update(undefined)
      return
    }
    const abort = new AbortController()
    const read = async (id: string): Promise<void> => {
      let j = journals.current.get(id)
      if (!j) journals.current.set(id, (j = { ...nothing, running: false, again: false }))
      if (j.running) {
        j.again = true
        return
      }
      j.running = true
      try {
        for (;;) {
          const from = j.rows.length === 0 ? 0 : j.rows[j.rows.length - 1]!.index + 1
          const more = await readEntries(id, from, abort.signal)
          if (more.length > 0) {
            j.rows = [...j.rows, ...more]
            j.steps = buildSteps(j.rows)
          }
          const full = more.length === pageSize
          if (!full) j.complete = true
          j.error = undefined
          update(undefined)
          if (!full) break
        }
      } catch (err) {
        if (abort.signal.aborted) return
        j.error = err as Error
        update(undefined)
      } finally {
        j.running = false
        if (j.again && !abort.signal.aborted) {
          j.again = false
          void read(id)
        }
      }
    }
    const list = key === '' ? [] : key.split(',')
    for (const id of list) void read(id)
    const stop = live
      ? subscribe({ topics: list.slice(0, 8).map((id) => `invocation:${id}`), every: 1500, run: () => list.forEach((id) => void read(id)), took: () => 0 })
      : undefined
    return () => {
      abort.abort()
      stop?.()
      for (const j of journals.current.values()) j.running = false
    }
  }, [key, live, fixed])
  return {
    of: (id) => journals.current.get(id) ?? nothing,
    loadEntry: async (id, index) => {
      const j = journals.current.get(id)
      const row = await readWholeEntry(id, index)
      if (!j || !row) return
      j.rows = j.rows.map((r) => (r.index === index ? row : r))
      j.steps = buildSteps(j.rows)
      update(undefined)
    },
  }
}
