[
  inputs: ["{mix,.formatter}.exs", "{lib,test,examples,bench}/**/*.{ex,exs}"],
  line_length: 120,
  locals_without_parens: [bang: 1]
]
