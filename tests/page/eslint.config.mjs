// Rules that find mistakes; undefined names and types are the business of tsc.
const rules = {
  'array-callback-return': 'error',
  'eqeqeq': 'error',
  'no-constant-condition': ['error', { checkLoops: false }],
  'no-dupe-keys': 'error',
  'no-duplicate-imports': 'error',
  'no-else-return': ['error', { allowElseIf: true }],
  'no-empty': 'error',
  'no-eval': 'error',
  'no-fallthrough': 'error',
  'no-implied-eval': 'error',
  'no-loss-of-precision': 'error',
  'no-new-func': 'error',
  'no-return-assign': ['error', 'except-parens'],
  'no-script-url': 'error',
  'no-self-compare': 'error',
  'no-shadow-restricted-names': 'error',
  'no-template-curly-in-string': 'error',
  'no-unreachable': 'error',
  'no-unsafe-finally': 'error',
  'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
  'no-useless-return': 'error',
  'no-var': 'error',
  'prefer-const': 'error',
  'require-atomic-updates': 'off',
  'max-lines': ['error', { max: 400 }],
};

// Untrusted text never becomes markup.
const noMarkup = {
  'no-restricted-properties': ['error',
    ...['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'srcdoc'].map((property) => ({ property, message: 'Build nodes with h(): text is never parsed as HTML.' })),
    { object: 'document', property: 'write', message: 'Build nodes with h().' },
    { object: 'document', property: 'cookie', message: 'The page has no cookies.' }],
};

export default [
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  { files: ['**/*.js'], languageOptions: { ecmaVersion: 2024, sourceType: 'module' }, rules: { ...rules, ...noMarkup } },
  { files: ['**/*.mjs'], languageOptions: { ecmaVersion: 2024, sourceType: 'module' }, rules: { ...rules, 'no-script-url': 'off', 'no-template-curly-in-string': 'off' } },
];
