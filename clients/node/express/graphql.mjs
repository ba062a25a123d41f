import graphql from './graphql.cjs'

export const { limitGraphQL, requestedCost, actualCost, CostError } = graphql
