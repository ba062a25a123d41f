// A GraphQL server whose clients are limited by the cost of their queries.
//
//   limitgate serve --limits limits.yaml
//   PORT=4000 LIMITGATE=127.0.0.1:6380 node graphql.mjs
//   curl localhost:4000/graphql --json '{"query": "{ books(first: 3) { nodes { title author { name } } } }"}'
import express from 'express'
import { buildSchema, execute, parse, validate } from 'graphql'
import Redis from 'ioredis'
import { limitGraphQL } from 'limitgate-express/graphql'

const schema = buildSchema(`
  type Query { books(first: Int!): Books! }
  type Books { nodes: [Book!]! }
  type Book { title: String! author: Author! }
  type Author { name: String! books(first: Int!): Books! }
`)
const books = (n) => ({ nodes: Array.from({ length: Math.min(n, 5) }, (_, i) => book(i)) })
const book = (i) => ({ title: `Book ${i}`, author: { name: `Author ${i % 2}`, books: ({ first }) => books(first) } })
const root = { books: ({ first }) => books(first) }

const [host, port] = (process.env.LIMITGATE ?? '127.0.0.1:6380').split(':')
const client = new Redis({ host, port: Number(port), commandTimeout: 250, maxRetriesPerRequest: 0 })
client.on('error', () => {}) // each query that goes on without limits is logged

const limited = limitGraphQL({ client, tenant: (req) => req.get('X-Tenant') ?? 'anonymous', maxCost: 1000 })

const app = express()
app.post('/graphql', express.json(), async (req, res) => {
  const { query, variables, operationName } = req.body
  let document
  try {
    document = parse(query, { maxTokens: 5000 })
  } catch (err) {
    return res.status(400).json({ errors: [{ message: err.message }] })
  }
  const errors = validate(schema, document)
  if (errors.length > 0) return res.status(400).json({ errors })
  res.json(await limited(req, res, { document, variables, operationName },
    () => execute({ schema, document, rootValue: root, variableValues: variables, operationName })))
})
const server = app.listen(Number(process.env.PORT ?? 4000), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
