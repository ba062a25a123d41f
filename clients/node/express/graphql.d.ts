import type { Options } from './index'

export interface CostOptions {
  variables?: Record<string, unknown>
  operationName?: string
  /** What a mutation costs beside its fields: 10. */
  mutation?: number
  /** The size of a connection whose first or last is not known: 10. */
  defaultSize?: number
  maxDepth?: number
  maxFields?: number
}

/** The document of graphql-js, of parse(). */
export interface Document { definitions: readonly any[] }

export class CostError extends Error {}

export function requestedCost(document: Document, options?: CostOptions): number
export function actualCost(data: unknown): number

export interface Query { document: Document; variables?: Record<string, unknown> | null; operationName?: string | null }
export interface Result { data?: unknown; errors?: readonly unknown[]; extensions?: Record<string, unknown> }

export function limitGraphQL(options: Omit<Options, 'cost' | 'settle'> & CostOptions & { status?: number; maxCost?: number }):
  (req: any, res: any, query: Query, execute: () => Result | Promise<Result>) => Promise<Result>
