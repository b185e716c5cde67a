/** The frame around every page: navigation, state of the live updates, color scheme, sign out. */
import {
  AppShell,
  Badge,
  Burger,
  Button,
  Group,
  NavLink,
  ScrollArea,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Session } from '../../src/operator/schemas.ts';
import type { LiveConnection } from './api/live-updates';
import { SignOut } from './sign-out';

const MENU_ITEMS: readonly { readonly label: string; readonly to: string; readonly transport?: 'capture' }[] = [
  { label: 'Overview', to: '/' },
  { label: 'Messages', to: '/messages' },
  { label: 'Inbox', to: '/inbox', transport: 'capture' },
  { label: 'Accounts', to: '/accounts' },
  { label: 'Domains', to: '/domains' },
  { label: 'Suppressions', to: '/suppressions' },
  { label: 'Webhooks', to: '/webhooks' },
  { label: 'Providers', to: '/providers' },
  { label: 'Feedback', to: '/feedback' },
  { label: 'Health', to: '/health' },
  { label: 'Audit log', to: '/audit' },
  { label: 'API tokens', to: '/tokens' },
  { label: 'Settings', to: '/settings' },
];

const CONNECTION_BADGES: Readonly<Record<LiveConnection, readonly [text: string, color: string]>> = {
  connecting: ['connecting', '#5c636a'],
  live: ['live', '#1e6b37'],
  lost: ['disconnected', '#a3271c'],
};

interface FrameProps {
  readonly session: Session;
  readonly live: LiveConnection;
  readonly children: ReactNode;
}

export function Frame({ session, live, children }: FrameProps) {
  const [opened, { toggle, close }] = useDisclosure();
  const [location] = useLocation();
  const [text, color] = CONNECTION_BADGES[live];
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 210, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a className="skip" href="#content">
        Skip to content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Text fw={700} size="lg">
              Postrider
            </Text>
            <Badge color={color} variant="filled" tt="none" radius="sm" role="status" style={{ flexShrink: 0 }}>
              {text}
            </Badge>
          </Group>
          <Group gap="xs" wrap="nowrap" visibleFrom="sm">
            <SchemeButton />
            <SignOut session={session} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        <AppShell.Section grow component={ScrollArea}>
          {MENU_ITEMS.filter(({ transport }) => transport === undefined || session.transport === transport).map(
            ({ label, to }) => {
              const active = to === '/' ? location === '/' : location === to || location.startsWith(`${to}/`);
              return (
                <NavLink
                  key={to}
                  component={Link}
                  href={to}
                  label={label}
                  active={active}
                  {...(active ? { 'aria-current': 'page' as const } : {})}
                  onClick={close}
                />
              );
            },
          )}
        </AppShell.Section>
        <AppShell.Section>
          <Group gap="xs" hiddenFrom="sm" p="sm">
            <SchemeButton />
            <SignOut session={session} />
          </Group>
          <NavLink href="/reference" label="API reference" />
          <Text size="sm" c="dimmed" px="sm" py="xs">
            Postrider {session.version}, <span className="wrap">transport {session.transport}</span>
          </Text>
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        {children}
      </AppShell.Main>
    </AppShell>
  );
}

function SchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const currentScheme = useComputedColorScheme('light');
  const otherScheme = currentScheme === 'dark' ? 'light' : 'dark';
  return (
    <Button
      variant="default"
      size="compact-sm"
      onClick={() => setColorScheme(otherScheme)}
      aria-label={`Switch to ${otherScheme} mode`}
    >
      {otherScheme === 'dark' ? 'Dark' : 'Light'}
    </Button>
  );
}
