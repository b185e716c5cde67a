/** The way out. Where no password is set it asks first, for there is no way back in but a new link or a token. */
import { Button, Code } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Session } from '../../src/operator/schemas.ts';
import { signOut as askOut } from './api/session';
import { Ask } from './parts/ask';

export function SignOut({ session: { password } }: { readonly session: Session }) {
  const queries = useQueryClient();
  const [asking, { open, close }] = useDisclosure();
  const signOut = useMutation({
    mutationFn: askOut,
    onSuccess: () => queries.resetQueries(),
    onError: ({ message }) => {
      // The dialog shows it where there is one.
      if (password) notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } });
    },
  });
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        loading={password && signOut.isPending}
        onClick={() => (password ? signOut.mutate() : open())}
      >
        Sign out
      </Button>
      <Ask
        opened={asking}
        title="Sign out without a password to come back with?"
        action="Sign out"
        busy={signOut.isPending}
        error={signOut.error}
        onConfirm={() => signOut.mutate()}
        onClose={() => {
          signOut.reset();
          close();
        }}
      >
        No password is set (POSTRIDER_OPERATOR_PASSWORD), and the link that you came by is used up. The way in will be
        the new link that the service prints at its next start; programs use a bearer token, made by{' '}
        <Code>postrider token create NAME</Code>.
      </Ask>
    </>
  );
}
