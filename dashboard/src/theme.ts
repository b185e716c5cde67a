/** Colors and sizes. Grays and blues differ from the defaults of Mantine so that every text has a contrast of 4.5:1 (WCAG 1.4.3). */
import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core';

const blue: MantineColorsTuple = [
  '#eaf3fc',
  '#d3e4f6',
  '#a4c8ee',
  '#72aae6',
  '#4a91df',
  '#2f80d8',
  '#1c5fa8',
  '#174f8c',
  '#123f70',
  '#0d2f54',
];

export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 6, dark: 6 },
  colors: { blue },
  defaultRadius: 'sm',
  autoContrast: true,
  luminanceThreshold: 0.3,
  fontFamily: 'system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, monospace',
  headings: { fontWeight: '600' },
  cursorType: 'pointer',
  // Color alone must not mark a link inside a sentence (WCAG 1.4.1).
  components: { Anchor: { defaultProps: { underline: 'always' } } },
});

export const getCssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5c636a',
    '--mantine-color-placeholder': '#6a7178',
    '--mantine-color-error': '#b42318',
  },
  dark: {
    '--mantine-color-dimmed': '#a6adb4',
    '--mantine-color-placeholder': '#9aa1a8',
    '--mantine-color-error': '#ff8f85',
  },
});
