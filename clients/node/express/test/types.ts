// Compiles: the types of the package are those of its use.
import { limit, retry, type Decision } from 'limitgate-express'
import { limitGraphQL, requestedCost } from 'limitgate-express/graphql'
import { LimitgateStore } from 'limitgate-express/store'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
// Express has no types of its own.
declare const app: { use(handler: (req: any, res: any, next: (err?: unknown) => void) => unknown): void }
import { parse } from 'graphql'

const ioredis = new Redis()
const redis = createClient()
app.use(limit({ client: ioredis, tenant: 'acme', cost: (req) => req.body.n, settle: () => 1 }))
app.use(limit({ client: { sendCommand: (words: string[]) => redis.sendCommand(words) }, tenant: async (req) => req.get('x'), onDenied: (req, res, next, d: Decision) => res.send(d.limitId) }))
app.use(limit({ url: 'http://127.0.0.1:8080', tenant: 'acme' }))
new LimitgateStore({ client: ioredis }).increment('k').then(({ totalHits }) => totalHits + 1)
const n: number = requestedCost(parse('{a}'), { maxDepth: 3 })
limitGraphQL({ client: ioredis, tenant: 'acme', maxCost: n })
const answer: Promise<Response> = retry(() => fetch('http://127.0.0.1'))
void answer
// @ts-expect-error a tenant is needed
limit({ client: ioredis })
