import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'out/', 'bundled/', 'node_modules/'] },
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    extends: [js.configs.recommended, ...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/dot-notation': 'off', // the compiler asks for brackets where names are not declared
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-deprecated': 'off', // VS Code still hands over what its types call deprecated
      '@typescript-eslint/no-base-to-string': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off', // after a check that the compiler does not follow
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off', // whatever can be disposed of is a Disposable
      '@typescript-eslint/no-unsafe-enum-comparison': 'off', // severities are in order
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowNullish: true }],
      eqeqeq: 'error',
      'no-restricted-imports': ['error', { paths: [{ name: 'child_process', message: 'src/server/run.ts starts programs' }] }],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: { '@typescript-eslint/no-unnecessary-condition': 'off' }, // the state of a session changes while tests wait
  },
  {
    files: ['**/*.mjs', 'test/extensions/**/*.js'],
    extends: [js.configs.recommended],
    languageOptions: {
      globals: Object.fromEntries(
        ['process', 'console', 'setTimeout', 'fetch', 'performance', 'URL', 'URLSearchParams', 'require', 'exports', 'Buffer', 'document', 'window', 'TextDecoder'].map((name) => [name, 'readonly']),
      ),
    },
  },
);
