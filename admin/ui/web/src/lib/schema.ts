// Sample values of JSON schemas, to start an input with.

import { Digits, parseExact } from './json.ts'

interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  default?: unknown
  examples?: unknown[]
  example?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  $ref?: string
  format?: string
  minimum?: number
}

/** JSON text of a sample; "" if the schema has no constraints. */
export function sampleOf(schema: unknown): string {
  if (schema === undefined || schema === null || schema === true) return ''
  const value = sample(schema as Schema, schema as Schema, 0)
  return value === undefined ? '' : JSON.stringify(value, null, 2)
}

/** A property that a form can edit; the others of an object are edited as JSON. */
export interface FormField {
  name: string
  kind: 'text' | 'number' | 'boolean' | 'choice'
  choices: readonly string[]
  required: boolean
}

/** The properties of an object that have simple values. */
export function fieldsOf(schema: unknown): FormField[] {
  if (typeof schema !== 'object' || schema === null) return []
  const root = schema as Schema
  const follow = (s: Schema | undefined): Schema | undefined => (s?.$ref ? resolve(s.$ref, root) : s)
  const top = follow(root)
  return Object.entries(top?.properties ?? {}).flatMap(([name, property]): FormField[] => {
    const s = follow(property)
    if (typeof s !== 'object' || s === null) return []
    const required = top?.required?.includes(name) ?? false
    if (s.enum?.every((v) => typeof v === 'string')) return [{ name, kind: 'choice', choices: s.enum as string[], required }]
    const type = Array.isArray(s.type) ? s.type.find((t) => t !== 'null') : s.type
    if (type === 'string') return [{ name, kind: 'text', choices: [], required }]
    if (type === 'number' || type === 'integer') return [{ name, kind: 'number', choices: [], required }]
    return type === 'boolean' ? [{ name, kind: 'boolean', choices: [], required }] : []
  })
}

/** The properties of JSON text; undefined if it is not an object. */
export function propertiesOf(text: string): Record<string, unknown> | undefined {
  try {
    JSON.parse(text) // refuses what is not valid
    const value = parseExact(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Digits) ? value as Record<string, unknown> : undefined
  } catch {
    return undefined
  }
}

function sample(s: Schema, root: Schema, depth: number): unknown {
  if (typeof s !== 'object' || depth > 6) return null
  if (s.$ref) {
    const found = resolve(s.$ref, root)
    return found ? sample(found, root, depth + 1) : null
  }
  if (s.const !== undefined) return s.const
  if (s.default !== undefined) return s.default
  if (s.example !== undefined) return s.example
  if (s.examples && s.examples.length > 0) return s.examples[0]
  if (s.enum && s.enum.length > 0) return s.enum[0]
  const choice = s.anyOf?.[0] ?? s.oneOf?.[0]
  if (choice) return sample(choice, root, depth + 1)
  if (s.allOf) return Object.assign({}, ...s.allOf.map((o) => sample(o, root, depth + 1)))
  switch (Array.isArray(s.type) ? s.type[0] : s.type ?? (s.properties ? 'object' : undefined)) {
    case 'object':
      return Object.fromEntries(Object.entries(s.properties ?? {}).map(([k, v]) => [k, sample(v, root, depth + 1)]))
    case 'array':
      return s.items ? [sample(s.items, root, depth + 1)] : []
    case 'string':
      return s.format === 'date-time' ? '2026-01-01T00:00:00Z' : ''
    case 'integer':
    case 'number':
      return s.minimum ?? 0
    case 'boolean':
      return false
    case 'null':
      return null
  }
  return undefined
}

function resolve(ref: string, root: Schema): Schema | undefined {
  if (!ref.startsWith('#')) return undefined
  let at: unknown = root
  for (const part of ref.slice(1).split('/').filter(Boolean)) {
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<string, unknown>)[part.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return at as Schema | undefined
}
