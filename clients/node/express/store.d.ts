import type { RedisClient } from './index'

/** A store for express-rate-limit. */
export class LimitgateStore {
  constructor(options: { client: RedisClient; prefix?: string })
  init(options: { windowMs: number; limit?: unknown; max?: unknown }): void
  increment(key: string): Promise<{ totalHits: number; resetTime: Date }>
  decrement(key: string): Promise<void>
  resetKey(key: string): Promise<void>
}
