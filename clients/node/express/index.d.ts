/** A client of ioredis, which has call, or of node-redis, which has sendCommand. */
export type RedisClient =
  | { call(command: string, ...args: string[]): Promise<unknown> }
  | { sendCommand(words: string[]): Promise<unknown> }

export interface Decision {
  allowed: boolean
  /** The capacity of the limit that decided, -1 without one. */
  limit: number
  remaining: number
  /** 0 if allowed, -1 if the request can never be allowed. */
  retryAfterMs: number
  resetAfterMs: number
  limitId: string
  source: 'store' | 'lease' | 'cache' | 'backstop' | 'policy'
  headers: Record<string, string>
  /** The id of a reservation. */
  id?: string
  /** Settles a reservation to what was used. */
  commit?: (actual: number) => Promise<boolean | void>
}

/** A value, or a function of the request. */
export type Of<Request, T> = T | ((req: Request) => T | Promise<T>)

export interface Options<Request = any, Response = any> {
  client?: RedisClient
  /** The address of limitgate serve --http, for applications without a Redis client. */
  url?: string
  /** The header Authorization for url. */
  authorization?: string
  /** How long to wait for a decision, in milliseconds: 250. */
  timeout?: number
  tenant: Of<Request, string>
  /** The method and the template of the route; in app.use() the path, as no route is known there. */
  op?: Of<Request, string>
  ip?: Of<Request, string | undefined>
  cost?: Of<Request, number>
  dims?: Of<Request, Record<string, string> | undefined>
  /** The true cost, when the answer is done: cost is an estimate then. */
  settle?: (req: Request, res: Response) => number | string | Promise<number | string>
  /** Whether requests go on while Limitgate does not answer: true. */
  failOpen?: boolean
  /** Receives errors of requests that go on. */
  onError?: (err: Error) => void
  onDenied?: (req: Request, res: Response, next: (err?: unknown) => void, decision: Decision) => void
}

/** A mistake in a call, such as a tenant that is too long. */
export class DecisionError extends Error {}

export function limit(options: Options): (req: any, res: any, next: (err?: unknown) => void) => Promise<void>
export function limitFastify(options: Options): (request: any, reply: any) => Promise<void>
export function limitKoa(options: Options): (ctx: any, next: () => Promise<unknown>) => Promise<void>
export function limiter(options: Options): (req: any, own?: { op?: Of<any, string>; ip?: Of<any, string> }) => Promise<Decision | undefined>

export interface RetryOptions {
  attempts?: number
  /** The bound of the first random wait, in milliseconds. It doubles. */
  base?: number
  /** The longest wait; where more is asked for, retry gives up. */
  maxWait?: number
  random?: () => number
  wait?: (ms: number) => Promise<void>
}

/** Calls attempt again while it is denied, with full jitter behind Retry-After. */
export function retry<R extends { status: number; headers: { get(name: string): string | null } }>(
  attempt: (n: number) => Promise<R>, options?: RetryOptions): Promise<R>
