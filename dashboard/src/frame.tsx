/** The frame around every page: sidebar, search, state of the live updates, color scheme, sign out. */
import {
  ActionIcon,
  AppShell,
  Burger,
  TextInput,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconMoon, IconSearch, IconSun, IconUser } from '@tabler/icons-react';
import { type ReactNode, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Session } from '../../src/operator/schemas.ts';
import { useInstallationStatus } from './api/installation-status';
import type { LiveConnection } from './api/live-updates';
import { MENU, type MenuItem } from './menu';
import { Callout } from './parts/callout';
import { KeyHint } from './parts/key-hint';
import { formatCount } from './parts/number';
import { storeTimeZone } from './parts/time-zone';
import { useTimeZone } from './parts/use-time-zone';
import { SignOut } from './sign-out';

const CONNECTION_TEXTS: Readonly<Record<LiveConnection, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Disconnected',
};

const ICON_SIZE = 18;
const ICON_STROKE = 1.6;

interface FrameProps {
  readonly session: Session;
  readonly connection: LiveConnection;
  readonly children: ReactNode;
}

export function Frame({ session, connection, children }: FrameProps) {
  const [opened, { toggle, close }] = useDisclosure();
  const { failureCount, nodeCount, activeHolds, heldCount } = useInstallationStatus();
  return (
    <AppShell
      layout="alt"
      header={{ height: 52 }}
      navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      transitionDuration={120}
    >
      <a className="skip" href="#content">
        Skip to content
      </a>
      <AppShell.Header className="top">
        <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
        <Search />
        <span className="live" data-state={connection} role="status">
          <i />
          {CONNECTION_TEXTS[connection]}
        </span>
        <span className="version-pill">
          {nodeCount > 1 ? `${nodeCount} nodes · ` : ''}v{session.version}
        </span>
        <TimeZoneButton />
        <SchemeButton />
      </AppShell.Header>
      <AppShell.Navbar className="side" aria-label="Pages">
        <div className="side-head">
          <Link href="/" className="brand" onClick={close} aria-label="Postrider">
            <Logo />
            Postrider
          </Link>
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Close menu" />
        </div>
        <div className="side-scroll">
          {MENU.map(({ group, items }) => (
            <MenuGroup
              key={group ?? ''}
              group={group}
              items={items.filter(({ transport }) => transport === undefined || session.transport === transport)}
              counts={{ '/health': failureCount }}
              onNavigate={close}
            />
          ))}
        </div>
        <div className="who">
          <span className="avatar">
            <IconUser size={16} aria-hidden />
          </span>
          <div className="who-text">
            <b>Operator</b>
            <span>transport {session.transport}</span>
          </div>
          <SignOut session={session} />
        </div>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <div className="page">
          {activeHolds === 0 ? null : <HoldNote activeHolds={activeHolds} heldCount={heldCount} />}
          {children}
        </div>
      </AppShell.Main>
    </AppShell>
  );
}

function HoldNote({ activeHolds, heldCount }: { readonly activeHolds: number; readonly heldCount: number }) {
  return (
    <Callout
      tone="warning"
      title={activeHolds === 1 ? 'A hold is in force' : `${activeHolds} holds are in force`}
      action={<Link href="/holds">Show</Link>}
    >
      {formatCount(heldCount, 'message')} held.
    </Callout>
  );
}

interface MenuGroupProps {
  readonly group: string | null;
  readonly items: readonly MenuItem[];
  /** The number of failures by path of the menu entry. Zero is not shown. */
  readonly counts: Readonly<Record<string, number>>;
  readonly onNavigate: () => void;
}

function MenuGroup({ group, items, counts, onNavigate }: MenuGroupProps) {
  const [location] = useLocation();
  return (
    <div>
      {group === null ? null : <div className="nav-group">{group}</div>}
      {items.map(({ label, to, Icon }) => {
        const isActive = to === '/' ? location === '/' : location === to || location.startsWith(`${to}/`);
        return (
          <Link
            key={to}
            href={to}
            className="nav-item"
            {...(isActive ? { 'aria-current': 'page' as const } : {})}
            onClick={onNavigate}
          >
            <Icon size={ICON_SIZE} stroke={ICON_STROKE} aria-hidden />
            {label}
            <FailureCount count={counts[to] ?? 0} />
          </Link>
        );
      })}
    </div>
  );
}

function FailureCount({ count }: { readonly count: number }) {
  if (count === 0) return null;
  return (
    <span className="nav-count">
      {` ${count}`}
      <span className="unseen"> {count === 1 ? 'failure' : 'failures'}</span>
    </span>
  );
}

/** The product logo: an envelope above a road. */
export function Logo() {
  return (
    <span className="brand-mark">
      <svg
        viewBox="0 0 24 24"
        width="16"
        height="16"
        fill="none"
        stroke="currentColor"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
      >
        <path d="M4 15V6l8 5 8-5v9" />
        <path d="M4 19h16" opacity=".55" />
      </svg>
    </span>
  );
}

/**
 * The search for messages, which every page contains. The key `/` moves the focus to this search field, or to the
 * search field of the page if the page has one.
 */
function Search() {
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const input = useRef<HTMLInputElement>(null);
  // A page with its own search field marks that field with `data-search`.
  useHotkeys([['/', () => (document.querySelector<HTMLInputElement>('[data-search]') ?? input.current)?.focus()]]);
  return (
    <search className="top-search" aria-label="All messages">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          navigate(text.trim() === '' ? '/messages' : `/messages?q=${encodeURIComponent(text.trim())}`);
          setText('');
          input.current?.blur();
        }}
      >
        <TextInput
          ref={input}
          type="search"
          aria-label="Find messages"
          placeholder="Search all messages"
          leftSection={<IconSearch size={16} stroke={ICON_STROKE} aria-hidden />}
          rightSection={<KeyHint>/</KeyHint>}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </form>
    </search>
  );
}

function TimeZoneButton() {
  const zone = useTimeZone();
  const [shownZone, otherZone] = zone === 'utc' ? (['UTC', 'local time'] as const) : (['Local', 'UTC'] as const);
  return (
    <UnstyledButton
      className="zone-button"
      onClick={() => storeTimeZone(zone === 'utc' ? 'local' : 'utc')}
      aria-label={`${shownZone}: show times in ${otherZone}`}
      title={`Show times in ${otherZone}`}
    >
      {shownZone}
    </UnstyledButton>
  );
}

function SchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const currentScheme = useComputedColorScheme('light');
  const otherScheme = currentScheme === 'dark' ? 'light' : 'dark';
  const Icon = otherScheme === 'dark' ? IconMoon : IconSun;
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size={32}
      onClick={() => setColorScheme(otherScheme)}
      aria-label={`Switch to ${otherScheme} mode`}
    >
      <Icon size={ICON_SIZE} stroke={ICON_STROKE} aria-hidden />
    </ActionIcon>
  );
}
