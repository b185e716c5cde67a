/**
 * The design tokens: colors, type, space and radii, for light and dark mode. This file is their only source. Mantine
 * components read them from the theme; style sheets read them as CSS variables with the prefix `--pr-`.
 *
 * Every text color has a contrast of at least 4.5:1 on every background on which it is used (WCAG 1.4.3).
 */
import {
  Button,
  type CSSVariablesResolver,
  createTheme,
  Input,
  type MantineColorsTuple,
  Modal,
  Paper,
  Popover,
} from '@mantine/core';

/** The colors of surfaces, text and states such as `delivered`, and the shadows, in light mode. */
const LIGHT_TOKENS = {
  bg: '#f7f8fa',
  surface: '#ffffff',
  sunken: '#f2f4f7',
  border: '#e4e7ec',
  strong: '#d3d8e0',
  text: '#151922',
  muted: '#5c6474',
  faint: '#667085',
  accent: '#3451d1',
  'accent-soft': '#eaeefc',
  delivered: '#107a57',
  'delivered-soft': '#e3f5ee',
  deferred: '#955c08',
  'deferred-soft': '#fcf1dd',
  bounced: '#c4321f',
  'bounced-soft': '#fdeae6',
  complained: '#7c3fc4',
  'complained-soft': '#f3eafc',
  neutral: '#566073',
  'neutral-soft': '#eceff4',
  queued: '#2563c9',
  'queued-soft': '#e7f0fd',
  shadow: '0 1px 2px rgb(16 24 40 / 0.05)',
  overlay: '0 6px 20px rgb(16 24 40 / 0.14)',
} as const;

type Token = keyof typeof LIGHT_TOKENS;

const DARK_TOKENS: Readonly<Record<Token, string>> = {
  bg: '#0d0f14',
  surface: '#14171e',
  sunken: '#1a1e27',
  border: '#242a35',
  strong: '#343c4a',
  text: '#e9ebf0',
  muted: '#a0a8b8',
  faint: '#8891a3',
  accent: '#8ba2ff',
  'accent-soft': '#1d2440',
  delivered: '#4cc79b',
  'delivered-soft': '#11291f',
  deferred: '#e0a84a',
  'deferred-soft': '#2c2210',
  bounced: '#f2806e',
  'bounced-soft': '#341a16',
  complained: '#bd93f5',
  'complained-soft': '#271a38',
  neutral: '#a7afbf',
  'neutral-soft': '#222833',
  queued: '#7fb0fa',
  'queued-soft': '#152440',
  shadow: 'none',
  overlay: '0 6px 20px rgb(0 0 0 / 0.5)',
};

/** The tokens by color scheme, for drawings on a canvas, which cannot read CSS variables. */
export const TOKENS: Readonly<Record<'light' | 'dark', Readonly<Record<Token, string>>>> = {
  light: LIGHT_TOKENS,
  dark: DARK_TOKENS,
};

const indigo: MantineColorsTuple = [
  '#eaeefc',
  '#d5dcf9',
  '#b3c0f5',
  '#9fb1ff',
  '#8ba2ff',
  '#5a74e6',
  '#3451d1',
  '#2c46b8',
  '#253b9b',
  '#1d2f7c',
];
const gray: MantineColorsTuple = [
  '#f7f8fa',
  '#f2f4f7',
  '#eceff4',
  '#e4e7ec',
  '#d3d8e0',
  '#8a92a2',
  '#667085',
  '#5c6474',
  '#2b3140',
  '#151922',
];
const dark: MantineColorsTuple = [
  '#e9ebf0',
  '#c3c9d5',
  '#a0a8b8',
  '#8891a3',
  '#343c4a',
  '#242a35',
  '#1a1e27',
  '#14171e',
  '#0d0f14',
  '#08090c',
];
const red: MantineColorsTuple = [
  '#fdeae6',
  '#f9cfc7',
  '#f4a698',
  '#f2806e',
  '#e0604b',
  '#d2442f',
  '#c4321f',
  '#a82818',
  '#8b2013',
  '#6e180e',
];

const MONOSPACE = '"JetBrains Mono", ui-monospace, SFMono-Regular, Menlo, monospace';
const SANS = 'Inter, system-ui, -apple-system, "Segoe UI", sans-serif';

/** The style of a card, dialog or menu, whose color differs from the background of the page. */
const SURFACE_STYLE = { backgroundColor: 'var(--pr-surface)' } as const;

/** Height, horizontal padding and font size of the buttons. */
const BUTTON_SIZES: Readonly<Record<string, readonly [height: string, padding: string, font: string]>> = {
  sm: ['32px', '12px', '13px'],
  xs: ['28px', '10px', '12px'],
  'compact-sm': ['28px', '10px', '12px'],
};

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 6, dark: 4 },
  colors: { indigo, gray, dark, red },
  autoContrast: true,
  luminanceThreshold: 0.3,
  fontFamily: SANS,
  fontFamilyMonospace: MONOSPACE,
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '21px' },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.43', lg: '1.4', xl: '1.33' },
  spacing: { xs: '8px', sm: '12px', md: '16px', lg: '20px', xl: '32px' },
  radius: { xs: '4px', sm: '6px', md: '8px', lg: '10px', xl: '16px' },
  defaultRadius: 'md',
  headings: {
    fontFamily: SANS,
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '21px', lineHeight: '28px', fontWeight: '650' },
      h2: { fontSize: '21px', lineHeight: '28px', fontWeight: '650' },
      h3: { fontSize: '16px', lineHeight: '24px' },
      h4: { fontSize: '14px', lineHeight: '20px' },
      h5: { fontSize: '13px', lineHeight: '18px' },
    },
  },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: Button.extend({
      vars: (_theme, { size = 'sm' }) => {
        const [height, padding, font] = BUTTON_SIZES[size] ?? [];
        if (height === undefined) return { root: {} };
        return {
          root: { '--button-height': height, '--button-padding-x': padding ?? '', '--button-fz': font ?? '' },
        };
      },
    }),
    Input: Input.extend({
      vars: (_theme, { size = 'sm' }) =>
        size === 'sm' ? { wrapper: { '--input-height': '34px', '--input-fz': '13px' } } : { wrapper: {} },
    }),
    Modal: Modal.extend({
      defaultProps: { radius: 'lg', transitionProps: { duration: 120, transition: 'fade' } },
      styles: { content: SURFACE_STYLE, header: SURFACE_STYLE },
    }),
    Popover: Popover.extend({
      defaultProps: { transitionProps: { duration: 100 } },
      styles: { dropdown: SURFACE_STYLE },
    }),
    Menu: {
      defaultProps: { transitionProps: { duration: 100 } },
      styles: { dropdown: SURFACE_STYLE },
    },
    SegmentedControl: { defaultProps: { withItemsBorders: false } },
    Paper: Paper.extend({ defaultProps: { radius: 'lg' }, styles: { root: SURFACE_STYLE } }),
  },
});

export const getCssVariables: CSSVariablesResolver = () => ({
  variables: { '--pr-radius': '10px', '--pr-mono': MONOSPACE },
  light: { ...toCssVariables(LIGHT_TOKENS), ...toMantineVariables(LIGHT_TOKENS) },
  dark: { ...toCssVariables(DARK_TOKENS), ...toMantineVariables(DARK_TOKENS) },
});

function toCssVariables(tokens: Readonly<Record<Token, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tokens).map(([name, value]) => [`--pr-${name}`, value]));
}

/** Returns the CSS variables of Mantine whose values are tokens. */
function toMantineVariables(tokens: Readonly<Record<Token, string>>): Record<string, string> {
  return {
    '--mantine-color-body': tokens.bg,
    '--mantine-color-text': tokens.text,
    '--mantine-color-dimmed': tokens.muted,
    '--mantine-color-placeholder': tokens.faint,
    '--mantine-color-error': tokens.bounced,
    '--mantine-color-anchor': tokens.accent,
    '--mantine-color-default': tokens.surface,
    '--mantine-color-default-hover': tokens.sunken,
    '--mantine-color-default-color': tokens.text,
    '--mantine-color-default-border': tokens.strong,
  };
}
